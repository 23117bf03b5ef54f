// Streams: each is a thread that executes its queue in order. Dependencies between streams are numbers of operations.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "driver.hpp"

namespace fakecuda {

class Stream;

struct Point {  // an operation of a stream, by number
    std::shared_ptr<Stream> stream;
    std::uint64_t number = 0;
};

struct Operation {
    std::function<void()> work;
    std::vector<Point> after;
};

struct Graph {
    std::vector<std::function<void()>> work;
    bool invalid = false;
    int mode = 0;          // CUstreamCaptureMode
    std::uint64_t thread;  // that has begun the capture
    Stream* origin = nullptr;
};

class Stream : public std::enable_shared_from_this<Stream> {
  public:
    Stream(Context* context, bool blocking, std::uint64_t id) : context(context), blocking(blocking), id(id) {}
    Point submit(std::function<void()> work, std::vector<Point> after);
    Point last();  // the operation that was submitted last
    bool has_completed(std::uint64_t number);
    void wait_until(std::uint64_t number);
    void close();

    Context* const context;
    const bool blocking;  // waits for the NULL stream, which waits for it
    const std::uint64_t id;
    std::shared_ptr<Graph> capture;

  private:
    void run();
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<Operation> queue_;
    std::uint64_t submitted_ = 0, completed_ = 0;
    bool started_ = false, closing_ = false;
};

struct Event {
    Point point;
    std::shared_ptr<Graph> capture;  // recorded while this graph was captured
};

// The stream of a handle, also 0, 1 (legacy NULL stream) and 2 (that of the thread); null if there is none.
std::shared_ptr<Stream> find_stream(void* handle);
// Enqueue work in the order that CUDA promises, or add it to the graph that is being captured. Returns an error.
int enqueue(void* stream, std::function<void()> work, std::vector<Point> after = {}, Point* submitted = nullptr);
// Wait for all streams of this process, as functions do that change the address space.
void wait_for_all();
// SUCCESS, or STREAM_CAPTURE_UNSUPPORTED where a capture forbids a function like cuMemAlloc.
int allowed_in_capture();
int live_streams();
std::uint64_t this_thread();

}  // namespace fakecuda
