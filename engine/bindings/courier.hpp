// The courier of a process, bound to Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "unisono/courier.hpp"
#include "unisono/tcp_transport.hpp"

namespace unisono::bindings {

class PyCourier {
  public:
    PyCourier(std::uint32_t rank, std::uint32_t size, const std::string& address, std::uint16_t first_port,
              std::uint16_t last_port);
    ~PyCourier() { close(); }
    std::uint16_t port() const { return port_; }
    void know_peers(const std::vector<std::string>& addresses, const std::vector<std::uint16_t>& ports,
                    const std::vector<std::string>& hosts, const std::vector<nanobind::bytes>& tickets_to,
                    const std::vector<nanobind::bytes>& tickets_from);
    void close();
    void abandon();
    // nullptr before `know_peers`.
    FarSide* far_side() const { return courier_.get(); }

  private:
    const std::uint32_t rank_, size_;
    std::unique_ptr<TcpTransport> listening_;  // until the courier takes it
    std::uint16_t port_;
    std::unique_ptr<Courier> courier_;
};

void bind_courier(nanobind::module_& module);

}  // namespace unisono::bindings
