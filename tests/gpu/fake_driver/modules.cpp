// Kernels: a module is a shared object for the host, and a launch calls its function on the thread of the stream.
#include <dlfcn.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "streams.hpp"

namespace fakecuda {
namespace {

// Run all blocks of a grid; `launch` is the parameter of the kernel.
using Run = void (*)(const void* launch, unsigned blocks);

struct Function {
    Run run;
    std::size_t parameter_bytes;
    int shared_bytes = 48 << 10;  // the most that a launch may ask for
};

struct Module {
    void* library;
    std::shared_ptr<Function> function;
};

template <typename Handle>
bool exists(std::set<void*>& all, Handle handle) {
    std::lock_guard guard(driver().lock);
    return all.contains(handle);
}

// The kernels of this process that run; the others wait in their streams.
struct Running {
    std::mutex lock;
    std::condition_variable changed;
    int count = 0;
};

Running& running() {
    static Running* only = new Running;
    return *only;
}

void run_resident(Run run, const void* launch, unsigned grid, int most) {
    {
        std::unique_lock guard(running().lock);
        running().changed.wait(guard, [&] { return most < 0 || running().count < most; });
        ++running().count;
    }
    run(launch, grid);
    std::lock_guard guard(running().lock);
    --running().count;
    running().changed.notify_all();
}

}  // namespace
}  // namespace fakecuda

using namespace fakecuda;

// The image is a text: "host-kernel:", the bytes of the parameter, ":", and the path of the shared object.
FAKE_API cuModuleLoadData(Module** made, const void* image) {
    if (int error = ready_with_context()) return error;
    if (int error = allowed_in_capture()) return error;
    constexpr const char* prefix = "host-kernel:";
    auto* text = static_cast<const char*>(image);
    if (std::strncmp(text, prefix, std::strlen(prefix)) != 0) return INVALID_IMAGE;
    synchronize_implicitly();
    char* end;
    std::size_t bytes = std::strtoul(text + std::strlen(prefix), &end, 10);
    std::string path(*end == ':' ? end + 1 : end);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return misuse(INVALID_IMAGE, "%s", dlerror());
    auto run = reinterpret_cast<Run>(dlsym(library, "unisono_host_run"));
    if (run == nullptr || bytes == 0) {
        dlclose(library);
        return misuse(INVALID_IMAGE, "%s is not a kernel for the host", path.c_str());
    }
    *made = new Module{library, std::make_shared<Function>(Function{run, bytes})};
    std::lock_guard guard(driver().lock);
    driver().modules.insert(*made);
    return SUCCESS;
}

FAKE_API cuModuleUnload(Module* module) {
    if (int error = ready_with_context()) return error;
    synchronize_implicitly();
    wait_for_all();
    std::lock_guard guard(driver().lock);
    if (driver().modules.erase(module) == 0) return misuse(INVALID_HANDLE, "a module is unloaded that does not exist");
    driver().functions.erase(module->function.get());
    dlclose(module->library);
    delete module;
    return SUCCESS;
}

FAKE_API cuModuleGetFunction(Function** function, Module* module, const char* name) {
    if (int error = ready_with_context()) return error;
    if (!exists(driver().modules, module)) return misuse(INVALID_HANDLE, "the module does not exist");
    if (std::strcmp(name, "run_program") != 0) return NOT_FOUND;
    *function = module->function.get();
    std::lock_guard guard(driver().lock);
    driver().functions.insert(*function);
    return SUCCESS;
}

FAKE_API cuFuncSetAttribute(Function* function, int attribute, int value) {
    if (int error = ready_with_context()) return error;
    if (!exists(driver().functions, function)) return misuse(INVALID_HANDLE, "the function does not exist");
    if (attribute != 8 || value < 0 || value > 227 << 10) return INVALID_VALUE;
    function->shared_bytes = value;
    return SUCCESS;
}

FAKE_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function* function, int threads, std::size_t) {
    if (int error = ready_with_context()) return error;
    if (!exists(driver().functions, function)) return misuse(INVALID_HANDLE, "the function does not exist");
    *blocks = threads <= 1024 ? settings().occupancy : 0;
    return SUCCESS;
}

FAKE_API cuLaunchKernel(Function* function, unsigned grid, unsigned grid_y, unsigned grid_z, unsigned threads,
                        unsigned threads_y, unsigned threads_z, unsigned shared_bytes, void* stream, void** parameters,
                        void** extra) {
    if (driver().skips) return SUCCESS;
    if (int error = ready_with_context()) return error;
    if (!exists(driver().functions, function)) return misuse(INVALID_HANDLE, "the function does not exist");
    if (grid == 0 || grid_y != 1 || grid_z != 1 || threads == 0 || threads > 1024 || threads_y != 1 || threads_z != 1)
        return INVALID_VALUE;
    if (parameters == nullptr || extra != nullptr) return INVALID_VALUE;
    if (shared_bytes > static_cast<unsigned>(function->shared_bytes))
        return misuse(INVALID_VALUE, "the launch asks for %u bytes of shared memory", shared_bytes);
    auto* bytes = static_cast<char*>(parameters[0]);
    std::string launch(bytes, function->parameter_bytes);  // a copy: the caller's may change after this call
    return enqueue(stream, [launch, grid, run = function->run] {
        Settings now;
        {
            std::lock_guard guard(driver().lock);
            now = driver().settings;
            if (driver().settings.launches > 0) --driver().settings.launches;
        }
        while (now.launches == 0) pause();  // never scheduled
        usleep(now.slow_launch_ms * 1000);
        if (driver().sticky == 0) run_resident(run, launch.data(), grid, now.resident);
    });
}

// ---- for tests --------------------------------------------------------------------------------------------------

// What the first use of another kernel of the program does, as CUDA loads kernels lazily.
FAKE_API fake_lazy_load() {
    if (int error = ready_with_context()) return error;
    synchronize_implicitly();
    return SUCCESS;
}

// Let a stream be late.
FAKE_API fake_delay(void* stream, std::uint64_t milliseconds) {
    return enqueue(stream, [=] { usleep(static_cast<useconds_t>(milliseconds * 1000)); });
}

FAKE_API fake_live_modules() {
    std::lock_guard guard(driver().lock);
    return static_cast<int>(driver().modules.size());
}
