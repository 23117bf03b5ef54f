#include "simulation.hpp"

#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "unisono/simulation.hpp"

namespace nb = nanobind;

namespace unisono::bindings {

namespace {

template <typename T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Pair = nb::ndarray<const double, nb::shape<2, -1>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<const T> span_of(const Column<T>& column, std::size_t length, const char* name) {
    if (column.shape(0) != length) throw nb::value_error((std::string(name) + ": unexpected length").c_str());
    return {column.data(), length};
}

PerPass per_pass(const Pair& pair, std::size_t length, const char* name) {
    if (pair.shape(1) != length) throw nb::value_error((std::string(name) + ": unexpected length").c_str());
    return {{pair.data(), length}, {pair.data() + length, length}};
}

// Gives a vector to Python as an array.
template <typename T>
nb::object array_of(std::vector<T>&& values) {
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    T* const data = owned->data();
    const std::size_t length = owned->size();
    nb::capsule owner(owned.release(), [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {length}, owner));
}

nb::dict simulate_events(Column<std::int64_t> first, Column<std::int64_t> sender, Column<std::int32_t> step,
                         Column<std::int32_t> sent_step, Column<std::uint8_t> sends, Pair busy_s, Pair leaving_s,
                         Pair occupied_s, Pair rendezvous_s, Column<double> flight_s, Column<std::int64_t> room,
                         Column<std::int64_t> room_passes, std::uint32_t passes, std::uint32_t tracks,
                         std::uint32_t ports, Column<double> bandwidth, Column<std::int32_t> routes,
                         Column<std::int32_t> weights, Column<std::int64_t> route, Pair message_bytes,
                         std::uint32_t hops, bool record, nb::object progress) {
    const std::size_t actions = sender.shape(0);
    SimulatedPrograms programs;
    programs.first = span_of(first, first.shape(0), "first");
    programs.sender = span_of(sender, actions, "sender");
    programs.step = span_of(step, actions, "step");
    programs.sent_step = span_of(sent_step, actions, "sent_step");
    programs.sends = span_of(sends, actions, "sends");
    programs.busy_s = per_pass(busy_s, actions, "busy_s");
    programs.leaving_s = per_pass(leaving_s, actions, "leaving_s");
    programs.occupied_s = per_pass(occupied_s, actions, "occupied_s");
    programs.rendezvous_s = per_pass(rendezvous_s, actions, "rendezvous_s");
    programs.flight_s = span_of(flight_s, actions, "flight_s");
    if (room.shape(0) > 0) {
        programs.room = span_of(room, actions, "room");
        programs.room_passes = span_of(room_passes, actions, "room_passes");
    }
    programs.passes = passes;
    programs.tracks = tracks;
    programs.ports = ports;
    SharedLinks links;
    if (hops > 0) {
        links.bandwidth = span_of(bandwidth, bandwidth.shape(0), "bandwidth");
        links.routes = span_of(routes, routes.shape(0), "routes");
        if (weights.shape(0) > 0) links.weights = span_of(weights, routes.shape(0), "weights");
        links.route = span_of(route, actions, "route");
        links.bytes = per_pass(message_bytes, actions, "message_bytes");
        links.hops = hops;
    }
    check(programs, links);
    const Progress report = [&](std::uint64_t done) {
        nb::gil_scoped_acquire held;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!progress.is_none()) progress(done);
    };
    SimulatedTimes times;
    {
        nb::gil_scoped_release released;
        times = simulate(programs, links, record, report);
    }
    nb::dict out;
    out["finished"] = times.finished;
    out["events"] = times.events;
    out["unit_end"] = array_of(std::move(times.unit_end));
    out["unit_busy"] = array_of(std::move(times.unit_busy));
    if (!record) return out;
    out["start"] = array_of(std::move(times.start));
    out["end"] = array_of(std::move(times.end));
    out["leave"] = array_of(std::move(times.leave));
    out["arrival"] = array_of(std::move(times.arrival));
    out["level"] = array_of(std::move(times.level));
    return out;
}

}  // namespace

void bind_simulation(nb::module_& module) {
    module.def("simulate_events", &simulate_events, nb::arg("first"), nb::arg("sender"), nb::arg("step"),
               nb::arg("sent_step"), nb::arg("sends"), nb::arg("busy_s"), nb::arg("leaving_s"), nb::arg("occupied_s"),
               nb::arg("rendezvous_s"), nb::arg("flight_s"), nb::arg("room"), nb::arg("room_passes"), nb::arg("passes"),
               nb::arg("tracks"), nb::arg("ports"), nb::arg("bandwidth"), nb::arg("routes"), nb::arg("weights"),
               nb::arg("route"), nb::arg("message_bytes"), nb::arg("hops"), nb::arg("record"),
               nb::arg("progress").none(),
               "Execute programs in simulated time (unisono/simulator/events.py); return arrays of times.");
}

}  // namespace unisono::bindings
