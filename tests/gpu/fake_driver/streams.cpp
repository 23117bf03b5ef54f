// Streams, events and the capture of graphs.
#include "streams.hpp"

#include <thread>
#include <utility>

namespace fakecuda {
namespace {

struct Streams {
    std::mutex lock;  // also makes the order of submissions to all streams one order
    std::map<Context*, std::shared_ptr<Stream>> null;
    std::map<void*, std::shared_ptr<Stream>> made;
    std::vector<std::weak_ptr<Stream>> all;
    std::vector<std::shared_ptr<Graph>> captures;
    std::uint64_t next_id = 1;  // addresses of streams are used again
};

Streams& streams() {
    static Streams* only = new Streams;
    return *only;
}

thread_local int capture_mode = 0;  // of this thread: cuThreadExchangeStreamCaptureMode

// The lock of the streams must be held by callers of the functions below.
std::shared_ptr<Stream> add(Context* context, bool blocking) {
    auto made = std::make_shared<Stream>(context, blocking, streams().next_id++);
    streams().all.push_back(made);
    return made;
}

std::shared_ptr<Stream> null_stream(Context* context) {
    auto& stream = streams().null[context];
    if (!stream) stream = add(context, true);
    return stream;
}

std::shared_ptr<Stream> find(void* handle) {
    auto number = reinterpret_cast<std::uintptr_t>(handle);
    if (number <= 1) return null_stream(current());
    if (number == 2) {
        thread_local std::map<Context*, std::shared_ptr<Stream>> of_thread;
        auto& stream = of_thread[current()];
        if (!stream) stream = add(current(), true);
        return stream;
    }
    auto found = streams().made.find(handle);
    return found == streams().made.end() ? nullptr : found->second;
}

// What an operation must wait for because of the rules of the NULL stream.
std::vector<Point> implied(const std::shared_ptr<Stream>& stream) {
    std::vector<Point> after;
    if (!stream->blocking) return after;
    auto null = null_stream(stream->context);
    if (stream != null) return {null->last()};
    for (auto& each : streams().all)
        if (auto other = each.lock(); other && other != null && other->blocking && other->context == stream->context)
            after.push_back(other->last());
    return after;
}

void end_capture(const std::shared_ptr<Graph>& graph) {
    for (auto& each : streams().all)
        if (auto stream = each.lock(); stream && stream->capture == graph) stream->capture = nullptr;
    std::erase(streams().captures, graph);
}

}  // namespace

std::uint64_t this_thread() { return std::hash<std::thread::id>{}(std::this_thread::get_id()); }

Point Stream::submit(std::function<void()> work, std::vector<Point> after) {
    std::lock_guard guard(lock_);
    queue_.push_back({std::move(work), std::move(after)});
    if (!started_) {
        started_ = true;
        std::thread([self = shared_from_this()] { self->run(); }).detach();
    }
    changed_.notify_all();
    return {shared_from_this(), ++submitted_};
}

Point Stream::last() {
    std::lock_guard guard(lock_);
    return {shared_from_this(), submitted_};
}

bool Stream::has_completed(std::uint64_t number) {
    std::lock_guard guard(lock_);
    return completed_ >= number;
}

void Stream::wait_until(std::uint64_t number) {
    std::unique_lock guard(lock_);
    changed_.wait(guard, [&] { return completed_ >= number; });
}

void Stream::close() {
    std::lock_guard guard(lock_);
    closing_ = true;
    changed_.notify_all();
}

void Stream::run() {
    std::unique_lock guard(lock_);
    while (true) {
        changed_.wait(guard, [&] { return closing_ || !queue_.empty(); });
        if (queue_.empty()) return;
        Operation next = std::move(queue_.front());
        queue_.pop_front();
        guard.unlock();
        for (auto& point : next.after) point.stream->wait_until(point.number);
        next.work();
        next = {};
        guard.lock();
        ++completed_;
        changed_.notify_all();
    }
}

std::shared_ptr<Stream> find_stream(void* handle) {
    std::lock_guard guard(streams().lock);
    return find(handle);
}

int enqueue(void* handle, std::function<void()> work, std::vector<Point> after, Point* submitted) {
    if (int error = ready_with_context()) return error;
    std::lock_guard guard(streams().lock);
    auto stream = find(handle);
    if (!stream) return misuse(INVALID_HANDLE, "the stream %p does not exist", handle);
    if (stream->context != current()) return misuse(INVALID_HANDLE, "the stream belongs to another context");
    if (auto graph = stream->capture) {
        if (graph->invalid) return STREAM_CAPTURE_INVALIDATED;
        graph->work.push_back(std::move(work));
        return SUCCESS;
    }
    if (reinterpret_cast<std::uintptr_t>(handle) <= 1)
        for (auto& graph : streams().captures)
            if (graph->origin->blocking) {
                graph->invalid = true;
                return STREAM_CAPTURE_IMPLICIT;
            }
    for (auto& point : implied(stream)) after.push_back(point);
    auto point = stream->submit(std::move(work), std::move(after));
    if (submitted != nullptr) *submitted = point;
    return SUCCESS;
}

void wait_for_all() {
    std::vector<Point> points;
    {
        std::lock_guard guard(streams().lock);
        for (auto& each : streams().all)
            if (auto stream = each.lock()) points.push_back(stream->last());
    }
    for (auto& point : points) point.stream->wait_until(point.number);
}

int allowed_in_capture() {
    std::lock_guard guard(streams().lock);
    if (capture_mode == 2) return SUCCESS;
    for (auto& graph : streams().captures) {
        bool own = graph->thread == this_thread();
        if ((own && graph->mode != 2) || (!own && graph->mode == 0 && capture_mode == 0)) {
            graph->invalid = true;
            return STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return SUCCESS;
}

int live_streams() {
    std::lock_guard guard(streams().lock);
    return static_cast<int>(streams().made.size());
}

}  // namespace fakecuda

using namespace fakecuda;

namespace {

bool is_event(Event* event) {
    std::lock_guard guard(driver().lock);
    return driver().events.contains(event);
}

Point point_of(Event* event) {  // enqueue writes it under the same lock
    std::lock_guard guard(streams().lock);
    return event->point;
}

std::shared_ptr<Graph> capture_of(const std::shared_ptr<Stream>& stream) {
    std::lock_guard guard(streams().lock);
    return stream->capture;
}

// An event may be asked or waited for by the host only if no capture forbids it.
int check_event(Event* event) {
    if (int error = ready_with_context()) return error;
    if (!is_event(event)) return misuse(INVALID_HANDLE, "the event %p does not exist", static_cast<void*>(event));
    return allowed_in_capture();
}

}  // namespace

FAKE_API cuStreamCreateWithPriority(void** made, unsigned flags, int) {
    if (int error = ready_with_context()) return error;
    if (flags > 1) return INVALID_VALUE;
    std::lock_guard guard(streams().lock);
    auto stream = add(current(), flags == 0);
    *made = stream.get();
    streams().made[stream.get()] = stream;
    return SUCCESS;
}

FAKE_API cuStreamCreate(void** made, unsigned flags) { return cuStreamCreateWithPriority(made, flags, 0); }

FAKE_API cuStreamDestroy_v2(void* handle) {
    if (int error = ready_with_context()) return error;
    std::lock_guard guard(streams().lock);
    auto found = streams().made.find(handle);
    if (found == streams().made.end()) return misuse(INVALID_HANDLE, "a stream is destroyed that does not exist");
    found->second->close();  // what is in the queue is still executed
    streams().made.erase(found);
    std::erase_if(streams().all, [](auto& each) { return each.expired(); });
    return SUCCESS;
}

FAKE_API cuStreamGetId(void* handle, unsigned long long* id) {
    if (int error = ready_with_context()) return error;
    auto stream = find_stream(handle);
    if (!stream) return misuse(INVALID_HANDLE, "the stream %p does not exist", handle);
    *id = stream->id;
    return SUCCESS;
}

FAKE_API cuStreamQuery(void* handle) {
    if (int error = ready_with_context()) return error;
    if (int error = allowed_in_capture()) return error;
    auto stream = find_stream(handle);
    if (!stream) return misuse(INVALID_HANDLE, "the stream %p does not exist", handle);
    return stream->has_completed(stream->last().number) ? SUCCESS : NOT_READY;
}

FAKE_API cuStreamSynchronize(void* handle) {
    if (int error = ready_with_context()) return error;
    if (int error = allowed_in_capture()) return error;
    auto stream = find_stream(handle);
    if (!stream) return misuse(INVALID_HANDLE, "the stream %p does not exist", handle);
    stream->wait_until(stream->last().number);
    return ready();
}

FAKE_API cuCtxSynchronize() {
    if (int error = ready_with_context()) return error;
    if (int error = allowed_in_capture()) return error;
    wait_for_all();
    return ready();
}

FAKE_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    if (int error = ready_with_context()) return error;
    *least = 0;
    *greatest = -5;
    return SUCCESS;
}

FAKE_API cuEventCreate(Event** event, unsigned) {
    if (int error = ready_with_context()) return error;
    *event = new Event;
    std::lock_guard guard(driver().lock);
    driver().events.insert(*event);
    return SUCCESS;
}

FAKE_API cuEventDestroy_v2(Event* event) {
    if (int error = ready_with_context()) return error;
    {
        std::lock_guard guard(driver().lock);
        if (driver().events.erase(event) == 0)
            return misuse(INVALID_HANDLE, "an event is destroyed that does not exist");
    }
    delete event;
    return SUCCESS;
}

FAKE_API cuEventRecord(Event* event, void* handle) {
    if (driver().skips) return SUCCESS;
    if (int error = ready_with_context()) return error;
    if (!is_event(event)) return misuse(INVALID_HANDLE, "the event %p does not exist", static_cast<void*>(event));
    auto stream = find_stream(handle);
    if (!stream) return misuse(INVALID_HANDLE, "the stream %p does not exist", handle);
    event->capture = capture_of(stream);
    return enqueue(handle, [] {}, {}, &event->point);
}

FAKE_API cuEventQuery(Event* event) {
    if (driver().skips) return SUCCESS;
    if (int error = check_event(event)) return error;
    if (event->capture) return INVALID_VALUE;
    auto point = point_of(event);
    return !point.stream || point.stream->has_completed(point.number) ? SUCCESS : NOT_READY;
}

FAKE_API cuEventSynchronize(Event* event) {
    if (int error = check_event(event)) return error;
    auto point = point_of(event);
    if (point.stream) point.stream->wait_until(point.number);
    return ready();
}

FAKE_API cuStreamWaitEvent(void* handle, Event* event, unsigned) {
    if (driver().skips) return SUCCESS;
    if (int error = ready_with_context()) return error;
    if (!is_event(event)) return misuse(INVALID_HANDLE, "the event %p does not exist", static_cast<void*>(event));
    auto stream = find_stream(handle);
    if (!stream) return misuse(INVALID_HANDLE, "the stream %p does not exist", handle);
    if (event->capture) {  // the stream joins the capture; the graph executes everything in one order
        std::lock_guard guard(streams().lock);
        stream->capture = event->capture;
        return SUCCESS;
    }
    auto point = point_of(event);
    return point.stream ? enqueue(handle, [] {}, {point}) : SUCCESS;
}

// ---- graphs: the captured operations, replayed in the order in which they were captured --------------------------

FAKE_API cuThreadExchangeStreamCaptureMode(int* mode) {
    if (int error = ready()) return error;
    std::swap(*mode, capture_mode);
    return SUCCESS;
}

FAKE_API cuStreamIsCapturing(void* handle, int* status) {
    if (int error = ready_with_context()) return error;
    auto stream = find_stream(handle);
    if (!stream) return misuse(INVALID_HANDLE, "the stream %p does not exist", handle);
    auto capture = capture_of(stream);
    *status = !capture ? 0 : capture->invalid ? 2 : 1;
    return SUCCESS;
}

FAKE_API cuStreamBeginCapture_v2(void* handle, int mode) {
    if (int error = ready_with_context()) return error;
    std::lock_guard guard(streams().lock);
    auto stream = find(handle);
    if (!stream || reinterpret_cast<std::uintptr_t>(handle) <= 1 || stream->capture) return INVALID_VALUE;
    auto graph = std::make_shared<Graph>();
    graph->mode = mode;
    graph->thread = this_thread();
    graph->origin = stream.get();
    stream->capture = graph;
    streams().captures.push_back(graph);
    return SUCCESS;
}

FAKE_API cuStreamEndCapture(void* handle, std::shared_ptr<Graph>** made) {
    if (int error = ready_with_context()) return error;
    std::lock_guard guard(streams().lock);
    auto stream = find(handle);
    *made = nullptr;
    if (!stream || !stream->capture || stream->capture->origin != stream.get()) return INVALID_VALUE;
    auto graph = stream->capture;
    end_capture(graph);
    if (graph->invalid) return STREAM_CAPTURE_INVALIDATED;
    *made = new std::shared_ptr<Graph>(graph);
    return SUCCESS;
}

// The executable graph is the graph itself.
FAKE_API cuGraphInstantiateWithFlags(std::shared_ptr<Graph>** made, std::shared_ptr<Graph>* graph, unsigned long long) {
    if (int error = ready_with_context()) return error;
    *made = new std::shared_ptr<Graph>(*graph);
    return SUCCESS;
}

FAKE_API cuGraphLaunch(std::shared_ptr<Graph>* graph, void* handle) {
    return enqueue(handle, [held = *graph] {
        for (auto& work : held->work) work();
    });
}

FAKE_API cuGraphDestroy(std::shared_ptr<Graph>* graph) {
    delete graph;
    return SUCCESS;
}

FAKE_API cuGraphExecDestroy(std::shared_ptr<Graph>* graph) { return cuGraphDestroy(graph); }

// ---- for tests --------------------------------------------------------------------------------------------------

FAKE_API fake_live_streams() { return live_streams(); }
FAKE_API fake_live_events() {
    std::lock_guard guard(driver().lock);
    return static_cast<int>(driver().events.size());
}
