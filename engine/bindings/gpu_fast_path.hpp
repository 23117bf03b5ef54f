// The fast path of calls on CUDA tensors: the table of their plans, which every collective of a communicator shares.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "known_plans.hpp"
#include "unisono/gpu/plan.hpp"

namespace unisono::bindings {

// What the fast path needs of a GpuEndpoint.
class GpuRunner {
  public:
    virtual ~GpuRunner() = default;
    // Enqueues a call. Throws python_error.
    virtual void run(gpu::GpuPlan& plan, std::uint64_t input, std::uint64_t output, std::uint64_t stream,
                     double timeout_s) = 0;
    // The same on `stream`, after everything that is in the stream `after` now. Returns the event behind the call.
    virtual nanobind::object start(nanobind::handle self, gpu::GpuPlan& plan, std::uint64_t input, std::uint64_t output,
                                   std::uint64_t after, std::uint64_t stream, double timeout_s) = 0;
    virtual bool is_capturing(std::uint64_t stream) = 0;
    virtual std::uint64_t staged_buffers() = 0;
};

// Knows nothing until the GPUs are connected.
class GpuTable {
  public:
    struct Functions {
        nanobind::object current_stream;  // returns the handle of torch's current stream, given the ordinal of a device
        nanobind::object report_staging;  // called once, when memory could not be shared
    };
    // `endpoint` is the object of `runner`.
    void connect(nanobind::object endpoint, GpuRunner& runner, int device, std::uint32_t rank, Functions functions);
    void remember(std::shared_ptr<gpu::GpuPlan> plan, const OutsideCall& call, bool part_is_input);
    void forget(const std::shared_ptr<gpu::GpuPlan>& plan);
    void clear() { connected_.reset(); }

    // Returns a null object if no equal call is known; nothing was done then. Otherwise enqueues the call on the
    // current stream and returns None. Throws python_error.
    nanobind::object repeat(const OutsideCall& call, double timeout_s);
    // The same on `stream`, which first waits for the current one; returns the event behind the call. Such a call is
    // not repeated while a CUDA graph captures the current stream.
    nanobind::object start(const OutsideCall& call, std::uint64_t stream, double timeout_s);

  private:
    struct Connected {
        nanobind::object endpoint;  // kept alive
        GpuRunner* runner;
        KnownPlans<gpu::GpuPlan> known;
        nanobind::object device;
        std::uint32_t rank;
        Functions functions;
        bool staging_reported = false;
    };
    static std::uint64_t current_stream(const Connected& at);
    static void report_staging(Connected& at);

    std::optional<Connected> connected_;
};

void bind_gpu_fast_path(nanobind::module_& module);

}  // namespace unisono::bindings
