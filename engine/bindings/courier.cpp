#include "courier.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>
#include <utility>

namespace nb = nanobind;

namespace unisono::bindings {

namespace {

// A ticket, or the digest of a certificate.
std::array<std::byte, 32> digest_of(const nb::bytes& bytes) {
    std::array<std::byte, 32> digest{};
    if (bytes.size() != digest.size()) throw nb::value_error("expected 32 bytes");
    const auto* data = reinterpret_cast<const std::byte*>(bytes.c_str());
    std::copy(data, data + digest.size(), digest.begin());
    return digest;
}

}  // namespace

PyCourier::PyCourier(std::uint32_t rank, std::uint32_t size, const std::string& address, std::uint16_t first_port,
                     std::uint16_t last_port)
    : rank_(rank), size_(size), tcp_(std::make_unique<TcpTransport>(rank, address, first_port, last_port)),
      port_(tcp_->port()) {}

void PyCourier::know_peers(const std::vector<std::string>& addresses, const std::vector<std::uint16_t>& ports,
                           const std::vector<std::string>& hosts, const std::vector<nb::bytes>& tickets_to,
                           const std::vector<nb::bytes>& tickets_from, const std::vector<nb::bytes>& certificates) {
    if (!tcp_ && !over_ucx_) throw nb::value_error("the peers of this courier are known already, or it is closed");
    for (const std::size_t length :
         {addresses.size(), ports.size(), hosts.size(), tickets_to.size(), tickets_from.size(), certificates.size()})
        if (length != size_) throw nb::value_error("expected one entry for each rank of the job");
    std::vector<TcpPeer> peers(size_);
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
        if (addresses[rank].empty()) continue;
        peers[rank] = {addresses[rank], ports[rank], digest_of(tickets_to[rank]), digest_of(tickets_from[rank]), {}};
        if (!tls_.empty()) peers[rank].certificate = digest_of(certificates[rank]);
    }
    std::unique_ptr<Transport> transport;
    if (over_ucx_) {
        over_ucx_->know_peers(peers);
        transport = std::move(over_ucx_);
    } else {
        tcp_->know_peers(std::move(peers));
        transport = std::move(tcp_);
    }
    courier_ = std::make_unique<Courier>(std::move(transport), rank_, hosts);
}

void PyCourier::use_tls(const std::string& certificate, const std::string& key, const std::string& authority,
                        std::uint64_t bytes_per_key) {
    if (!tcp_) throw nb::value_error("TLS must be set before another transport, and before the peers are known");
    auto tls = std::make_unique<TlsContext>(certificate, key, authority, bytes_per_key);
    tls_ = openssl_version();
    tcp_->use_tls(std::move(tls));
}

void PyCourier::use_ucx(const std::vector<std::string>& candidates, const UcxContext::Settings& settings) {
    if (!tcp_) throw nb::value_error("this courier has a transport already, or it is closed");
    if (!tls_.empty()) throw nb::value_error("UCX does not encrypt");
    const nb::gil_scoped_release released;
    ucx_ = std::make_shared<UcxContext>(candidates, settings);
    over_ucx_ = std::make_unique<UcxTransport>(ucx_, std::move(tcp_), rank_, size_);
}

std::string PyCourier::transport() const { return ucx_ ? "ucx " + ucx_->version() : "tcp"; }

std::vector<std::string> PyCourier::ucx_resources() const {
    return ucx_ ? ucx_->resources() : std::vector<std::string>();
}

std::optional<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> PyCourier::ask_clock(std::uint32_t rank,
                                                                                            double timeout_s) {
    if (rank >= size_ || rank == rank_ || !courier_) throw nb::value_error("not a far rank of this courier");
    const nb::gil_scoped_release released;
    const auto longest = std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(timeout_s));
    const std::optional<PeerClock> found = courier_->ask_clock(rank, longest);
    if (!found) return std::nullopt;
    return std::tuple(found->asked, found->read, found->answered);
}

void PyCourier::close() {
    const nb::gil_scoped_release released;
    tcp_.reset();
    over_ucx_.reset();
    if (courier_) courier_->close();
}

void PyCourier::abandon() {
    if (tcp_) tcp_->abandon();
    if (over_ucx_) over_ucx_->abandon();
    if (courier_) courier_->abandon();
    static_cast<void>(courier_.release());
    if (ucx_) new std::shared_ptr<UcxContext>(std::move(ucx_));  // UCX cannot be ended in a forked child
}

void bind_courier(nb::module_& module) {
    module.def("openssl_version", &openssl_version);
    nb::class_<PyCourier>(module, "Courier", "Moves messages between this process and the ranks of other hosts.")
        .def(
            "__init__",
            [](PyCourier* self, std::uint32_t rank, std::uint32_t size, const std::string& address,
               std::uint16_t first_port, std::uint16_t last_port) {
                try {
                    new (self) PyCourier(rank, size, address, first_port, last_port);
                } catch (const std::system_error& error) {
                    errno = error.code().value();
                    PyErr_SetFromErrno(PyExc_OSError);
                    throw nb::python_error();
                }
            },
            nb::arg("rank"), nb::arg("size"), nb::arg("address"), nb::arg("first_port"), nb::arg("last_port"))
        .def("know_peers", &PyCourier::know_peers, nb::arg("addresses"), nb::arg("ports"), nb::arg("hosts"),
             nb::arg("tickets_to"), nb::arg("tickets_from"), nb::arg("certificates"))
        .def_prop_ro("port", &PyCourier::port)
        .def("use_tls", &PyCourier::use_tls, nb::arg("certificate"), nb::arg("key"), nb::arg("authority"),
             nb::arg("bytes_per_key"))
        .def_prop_ro("tls", &PyCourier::tls)
        .def("use_ucx", &PyCourier::use_ucx, nb::arg("candidates"), nb::arg("settings"))
        .def_prop_ro("transport", &PyCourier::transport)
        .def_prop_ro("ucx_resources", &PyCourier::ucx_resources)
        .def("ask_clock", &PyCourier::ask_clock, nb::arg("rank"), nb::arg("timeout_s"))
        .def("close", &PyCourier::close)
        .def("abandon", &PyCourier::abandon);
}

}  // namespace unisono::bindings
