// The courier of a process, bound to Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "unisono/courier.hpp"
#include "unisono/tcp_transport.hpp"
#include "unisono/ucx_transport.hpp"

namespace unisono::bindings {

class PyCourier {
  public:
    PyCourier(std::uint32_t rank, std::uint32_t size, const std::string& address, std::uint16_t first_port,
              std::uint16_t last_port);
    ~PyCourier() { close(); }
    std::uint16_t port() const { return port_; }
    void know_peers(const std::vector<std::string>& addresses, const std::vector<std::uint16_t>& ports,
                    const std::vector<std::string>& hosts, const std::vector<nanobind::bytes>& tickets_to,
                    const std::vector<nanobind::bytes>& tickets_from, const std::vector<nanobind::bytes>& certificates);
    // Encrypts all connections. To be called before `know_peers`; see TlsContext for the arguments.
    void use_tls(const std::string& certificate, const std::string& key, const std::string& authority,
                 std::uint64_t bytes_per_key);
    // Sends data with UCX. To be called before `know_peers`; see UcxContext for the arguments.
    void use_ucx(const std::vector<std::string>& candidates, const UcxContext::Settings& settings);
    std::string transport() const;
    const std::string& tls() const { return tls_; }
    std::vector<std::string> ucx_resources() const;
    // Returns the clock of a far rank and of this process, before and after it was read: (before, peer's, after) in ns
    // of CLOCK_MONOTONIC; None if there is no answer.
    std::optional<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> ask_clock(std::uint32_t rank,
                                                                                     double timeout_s);
    void close();
    void abandon();
    // nullptr before `know_peers`.
    FarSide* far_side() const { return courier_.get(); }

  private:
    const std::uint32_t rank_, size_;
    // One of these is the transport, until the courier takes it.
    std::unique_ptr<TcpTransport> tcp_;
    std::unique_ptr<UcxTransport> over_ucx_;
    std::shared_ptr<UcxContext> ucx_;  // nullptr: TCP carries everything
    std::string tls_;                  // the version of OpenSSL; empty: nothing is encrypted
    std::uint16_t port_;
    std::unique_ptr<Courier> courier_;
};

void bind_courier(nanobind::module_& module);

}  // namespace unisono::bindings
