#include "unisono/ucx_context.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "ucx_abi.hpp"

namespace unisono {

namespace {

constexpr unsigned ucx_major = 1, oldest_ucx_minor = 13;
constexpr const char loaded_prefix[] = "loaded:";

// Looks up a function of a library; sets `missing` if it has none of this name.
template <typename Function>
void look_up(void* library, const char* name, Function*& function, std::string& missing) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    if (function == nullptr) missing = name;
}

std::string look_up_all(void* library, ucx::Functions& functions) {
    std::string missing;
    look_up(library, "ucp_get_version", functions.get_version, missing);
    look_up(library, "ucp_config_read", functions.config_read, missing);
    look_up(library, "ucp_config_modify", functions.config_modify, missing);
    look_up(library, "ucp_config_release", functions.config_release, missing);
    look_up(library, "ucp_init_version", functions.init_version, missing);
    look_up(library, "ucp_cleanup", functions.cleanup, missing);
    look_up(library, "ucp_context_print_info", functions.context_print_info, missing);
    look_up(library, "ucp_worker_create", functions.worker_create, missing);
    look_up(library, "ucp_worker_destroy", functions.worker_destroy, missing);
    look_up(library, "ucp_worker_get_address", functions.worker_get_address, missing);
    look_up(library, "ucp_worker_release_address", functions.worker_release_address, missing);
    look_up(library, "ucp_worker_set_am_recv_handler", functions.worker_set_am_recv_handler, missing);
    look_up(library, "ucp_worker_progress", functions.worker_progress, missing);
    look_up(library, "ucp_worker_get_efd", functions.worker_get_efd, missing);
    look_up(library, "ucp_worker_arm", functions.worker_arm, missing);
    look_up(library, "ucp_ep_create", functions.ep_create, missing);
    look_up(library, "ucp_ep_close_nbx", functions.ep_close_nbx, missing);
    look_up(library, "ucp_am_send_nbx", functions.am_send_nbx, missing);
    look_up(library, "ucp_am_data_release", functions.am_data_release, missing);
    look_up(library, "ucp_request_check_status", functions.request_check_status, missing);
    look_up(library, "ucp_request_free", functions.request_free, missing);
    look_up(library, "ucs_status_string", functions.status_string, missing);
    return missing;
}

// A process that has not loaded UCX before keeps its handlers of signals, and reads no reports of UCX about peers that
// have ended: the engine reports them. libucs exports these functions but does not document them.
void make_quiet(void* library) {
    if (const auto disable = reinterpret_cast<void (*)()>(::dlsym(library, "ucs_debug_disable_signals"))) disable();
    using Set = ucx::Status (*)(const char*, const char*);
    if (const auto set = reinterpret_cast<Set>(::dlsym(library, "ucs_global_opts_set_value")))
        set("LOG_LEVEL", "fatal");
}

}  // namespace

UcxContext::UcxContext(const std::vector<std::string>& candidates, const Settings& settings)
    : functions_(std::make_unique<ucx::Functions>()) {
    std::string reasons;
    for (const std::string& candidate : candidates) {
        const std::string reason = load(candidate);
        if (reason.empty()) break;
        reasons += (reasons.empty() ? "" : "; ") + reason;
    }
    if (path_.empty()) throw std::runtime_error(reasons.empty() ? "no UCX library is known" : reasons);

    ucx::Config* config = nullptr;
    if (functions_->config_read(nullptr, nullptr, &config) != ucx::Status::ok)
        throw std::runtime_error(path_ + ": its configuration cannot be read");
    for (const auto& [name, value] : settings)
        if (functions_->config_modify(config, name.c_str(), value.c_str()) != ucx::Status::ok) {
            functions_->config_release(config);
            throw std::runtime_error(path_ + ": does not know the setting " + name + "=" + value);
        }
    ucx::ContextParameters parameters;
    parameters.fields = ucx::ContextParameters::has_features | ucx::ContextParameters::has_shared_workers;
    parameters.features = ucx::ContextParameters::active_messages | ucx::ContextParameters::wakeup;
    parameters.workers_are_shared = 1;
    const ucx::Status status = functions_->init_version(ucx_major, oldest_ucx_minor, &parameters, config, &handle_);
    functions_->config_release(config);
    if (status != ucx::Status::ok) throw std::runtime_error(path_ + ": " + functions_->status_string(status));
    list_resources();
}

UcxContext::~UcxContext() {
    if (handle_ != nullptr) functions_->cleanup(handle_);
}

std::string UcxContext::load(const std::string& candidate) {
    const bool is_loaded = candidate.starts_with(loaded_prefix);
    const std::string name = is_loaded ? candidate.substr(sizeof loaded_prefix - 1) : candidate;
    const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    void* const before = ::dlopen(name.c_str(), flags | RTLD_NOLOAD);
    void* const library = before != nullptr || is_loaded ? before : ::dlopen(name.c_str(), flags);
    if (library == nullptr) return is_loaded ? name + ": this process has not loaded it" : ::dlerror();
    if (const std::string missing = look_up_all(library, *functions_); !missing.empty())
        return name + ": has no function " + missing;
    unsigned major = 0, minor = 0, release = 0;
    functions_->get_version(&major, &minor, &release);
    version_ = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
    if (major != ucx_major || minor < oldest_ucx_minor)
        return name + ": is UCX " + version_ + "; expected 1.13 or a later 1.x";
    Dl_info info{};
    const bool known = ::dladdr(reinterpret_cast<void*>(functions_->get_version), &info) != 0;
    path_ = known && info.dli_fname != nullptr ? info.dli_fname : name;
    if (before == nullptr) make_quiet(library);
    return "";
}

// UCX has no function for this before there is an endpoint, but it prints a list:
//     # resource 0  :  md 1  dev 0  flags -- tcp/eth0
void UcxContext::list_resources() {
    char* text = nullptr;
    std::size_t bytes = 0;
    std::FILE* const stream = ::open_memstream(&text, &bytes);
    if (stream == nullptr) return;
    functions_->context_print_info(handle_, stream);
    std::fclose(stream);
    std::istringstream lines(std::string(text, bytes));
    std::free(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t last = line.find_last_of(" \t");
        if (line.find("resource ") == std::string::npos || last == std::string::npos) continue;
        const std::string name = line.substr(last + 1);
        if (name.find('/') != std::string::npos) resources_.push_back(name);
    }
}

}  // namespace unisono
