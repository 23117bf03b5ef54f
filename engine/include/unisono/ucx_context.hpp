// UCX, loaded at run time, and what it has found on this host. See docs/adr/0043-ucx.md.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace unisono {

namespace ucx {
struct Context;
struct Functions;
}  // namespace ucx

// UCX is never unloaded: a process has threads and memory of it for as long as it runs.
class UcxContext {
  public:
    using Settings = std::vector<std::pair<std::string, std::string>>;

    // Loads the first library of `candidates` that can be used: a path, a name that the loader searches for, or
    // "loaded:" and a name for a library that the process has loaded already. Throws std::runtime_error with the
    // reason for each candidate that cannot be used. `settings` are those of UCX, without their prefix.
    UcxContext(const std::vector<std::string>& candidates, const Settings& settings);
    ~UcxContext();
    UcxContext(const UcxContext&) = delete;
    UcxContext& operator=(const UcxContext&) = delete;

    const std::string& version() const { return version_; }
    const std::string& path() const { return path_; }
    // The transports that UCX may use, each with its device, as in "tcp/eth0".
    const std::vector<std::string>& resources() const { return resources_; }
    const ucx::Functions& functions() const { return *functions_; }
    ucx::Context* handle() const { return handle_; }

  private:
    std::string load(const std::string& candidate);  // returns why it cannot be used; empty: it is loaded
    void list_resources();

    std::unique_ptr<ucx::Functions> functions_;
    ucx::Context* handle_ = nullptr;
    std::string version_, path_;
    std::vector<std::string> resources_;
};

}  // namespace unisono
