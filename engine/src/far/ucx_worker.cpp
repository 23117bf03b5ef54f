#include "ucx_worker.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace unisono {

namespace {

// Short messages are copied when they arrive, so UCX need not keep them.
constexpr unsigned short_message = 1, long_message = 2;
constexpr std::size_t payload_alignment = 16;
constexpr int progress_at_once = 32;
constexpr std::chrono::milliseconds longest_closing{1000};

bool is_same_ticket(const Ticket& left, const Ticket& right) {
    std::byte difference{};
    for (std::size_t index = 0; index < left.size(); ++index) difference |= left[index] ^ right[index];
    return difference == std::byte{};
}

void expect_ok(const ucx::Functions& ucp, ucx::Status status, const char* what) {
    if (status != ucx::Status::ok) throw std::runtime_error(std::string(what) + ": " + ucp.status_string(status));
}

}  // namespace

UcxWorker::UcxWorker(std::shared_ptr<UcxContext> context, std::uint32_t size)
    : context_(std::move(context)), ucp_(context_->functions()), peers_(size) {
    for (Peer& peer : peers_) peer.worker = this;
    try {
        create();
    } catch (...) {
        if (worker_ != nullptr) ucp_.worker_destroy(worker_);
        throw;
    }
}

void UcxWorker::know_peers(const std::vector<TcpPeer>& peers) {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
        peers_[rank].is_far = !peers[rank].address.empty();
        peers_[rank].ticket_to = peers[rank].ticket_to;
        peers_[rank].ticket_from = peers[rank].ticket_from;
    }
}

void UcxWorker::create() {
    ucx::WorkerParameters parameters;
    parameters.fields = ucx::WorkerParameters::has_thread_mode | ucx::WorkerParameters::has_alignment;
    parameters.thread_mode = ucx::WorkerParameters::serialized;
    parameters.alignment = payload_alignment;
    expect_ok(ucp_, ucp_.worker_create(context_->handle(), &parameters, &worker_), "ucp_worker_create");
    expect_ok(ucp_, ucp_.worker_get_efd(worker_, &descriptor_), "ucp_worker_get_efd");
    handle(short_message, ucx::HandlerParameters::whole_message);
    handle(long_message, ucx::HandlerParameters::whole_message | ucx::HandlerParameters::persistent_data);
    ucx::Address* address = nullptr;
    std::size_t bytes = 0;
    expect_ok(ucp_, ucp_.worker_get_address(worker_, &address, &bytes), "ucp_worker_get_address");
    const auto* const data = reinterpret_cast<const std::byte*>(address);
    address_.assign(data, data + bytes);
    ucp_.worker_release_address(worker_, address);
}

void UcxWorker::handle(unsigned id, std::uint32_t flags) {
    using Parameters = ucx::HandlerParameters;
    Parameters parameters;
    parameters.fields =
        Parameters::has_id | Parameters::has_flags | Parameters::has_callback | Parameters::has_argument;
    parameters.id = id;
    parameters.flags = flags;
    parameters.on_message = on_message;
    parameters.argument = this;
    expect_ok(ucp_, ucp_.worker_set_am_recv_handler(worker_, &parameters), "ucp_worker_set_am_recv_handler");
}

UcxWorker::~UcxWorker() {
    for (Peer& peer : peers_) close_endpoint(peer);
    await(longest_closing, [&] { return !is_closing(); });
    arrived.clear();
    ucp_.worker_destroy(worker_);
}

// ---- outgoing --------------------------------------------------------------------------------------------------

bool UcxWorker::connect(std::uint32_t rank, const std::byte* address) {
    using Parameters = ucx::EndpointParameters;
    Parameters parameters;
    parameters.fields = Parameters::has_address | Parameters::has_error_mode | Parameters::has_error_handler;
    parameters.address = reinterpret_cast<const ucx::Address*>(address);
    parameters.error_mode = Parameters::report_failed_peer;
    parameters.on_error = on_error;
    parameters.on_error_argument = &peers_[rank];
    return ucp_.ep_create(worker_, &parameters, &peers_[rank].endpoint) == ucx::Status::ok;
}

void UcxWorker::post(std::uint32_t to, Letter letter) {
    using Parameters = ucx::RequestParameters;
    Peer& peer = peers_[to];
    if (peer.endpoint == nullptr || !peer.failure.empty() || peer.disconnected) return;
    peer.in_flight.push_back(InFlight{Header{letter.label, peer.ticket_to}, std::move(letter), this});
    InFlight& item = peer.in_flight.back();
    const Label& label = item.header.label;
    Parameters parameters;
    parameters.fields =
        Parameters::has_callback | Parameters::has_user_data | Parameters::has_flags | Parameters::has_memory_kind;
    parameters.flags = Parameters::eager;
    parameters.on_sent = on_sent;
    parameters.user_data = &item;
    parameters.memory_kind = Parameters::host_memory;
    const unsigned id = label.bytes <= Sink::borrowed_bytes ? short_message : long_message;
    ++peer.posted;
    ++unsent_;
    const ucx::StatusPointer result = ucp_.am_send_nbx(peer.endpoint, id, &item.header, sizeof item.header,
                                                       item.letter.payload(), label.bytes, &parameters);
    if (result != nullptr && !ucx::is_error(result)) return;  // UCX reports when it no longer needs the letter
    item.done = completed_ = true;
    --unsent_;
    if (result != nullptr) fail(to, ucp_.status_string(ucx::status_of(result)));
}

void UcxWorker::on_sent(void* request, ucx::Status, void* in_flight) {
    auto& item = *static_cast<InFlight*>(in_flight);
    item.done = item.worker->completed_ = true;
    --item.worker->unsent_;
    item.worker->ucp_.request_free(request);
}

bool UcxWorker::take_sent(std::uint32_t rank, Label& label) {
    Peer& peer = peers_[rank];
    while (!peer.in_flight.empty() && peer.in_flight.front().done) {
        label = peer.in_flight.front().header.label;
        peer.in_flight.pop_front();
        if (peer.failure.empty() && !peer.disconnected) return true;
    }
    return false;
}

bool UcxWorker::reads_payloads_for(std::uint32_t rank, std::uint64_t communicator) const {
    const auto& letters = peers_[rank].in_flight;
    return std::any_of(letters.begin(), letters.end(), [&](const InFlight& item) {
        return !item.done && item.header.label.communicator == communicator && item.header.label.bytes > 0 &&
               item.letter.owned.empty();
    });
}

bool UcxWorker::reads_payloads(std::uint64_t communicator) const {
    for (std::uint32_t rank = 0; rank < peers_.size(); ++rank)
        if (reads_payloads_for(rank, communicator)) return true;
    return false;
}

// ---- incoming --------------------------------------------------------------------------------------------------

ucx::Status UcxWorker::on_message(void* self, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucx::ReceiveParameters* parameters) {
    UcxWorker& worker = *static_cast<UcxWorker*>(self);
    Header letter;
    if (header_bytes == sizeof letter) std::memcpy(&letter, header, sizeof letter);
    const bool is_whole = (parameters->attributes & ucx::ReceiveParameters::is_rendezvous) == 0;
    if (!is_whole || header_bytes != sizeof letter || letter.label.bytes != bytes ||
        letter.label.from >= worker.peers_.size() || !worker.peers_[letter.label.from].is_far ||
        !is_same_ticket(letter.ticket, worker.peers_[letter.label.from].ticket_from)) {
        ++worker.rejected_;
        return ucx::Status::ok;
    }
    const bool may_keep = (parameters->attributes & ucx::ReceiveParameters::is_kept_data) != 0;
    return worker.keep(letter, static_cast<std::byte*>(data), may_keep) ? ucx::Status::in_progress : ucx::Status::ok;
}

// Takes note of a letter; returns whether its payload stays where UCX has put it.
bool UcxWorker::keep(const Header& header, std::byte* data, bool may_keep) {
    ++peers_[header.label.from].received;
    Arrived& letter = arrived.emplace_back();
    letter.label = header.label;
    const std::size_t bytes = header.label.bytes;
    if (bytes <= Sink::borrowed_bytes) {
        if (bytes > 0) std::memcpy(letter.short_payload.data(), data, bytes);
        return false;
    }
    if (may_keep && reinterpret_cast<std::uintptr_t>(data) % payload_alignment == 0) {
        letter.payload = Payload(data, release, this);
        return true;
    }
    letter.payload = pool_.get(bytes);
    std::memcpy(letter.payload.data(), data, bytes);
    return false;
}

void UcxWorker::release(void* self, std::byte* data) {
    UcxWorker& worker = *static_cast<UcxWorker*>(self);
    worker.ucp_.am_data_release(worker.worker_, data);
}

// ---- progress --------------------------------------------------------------------------------------------------

bool UcxWorker::progress() {
    int rounds = 0;
    while (rounds < progress_at_once && ucp_.worker_progress(worker_) != 0) ++rounds;
    return rounds > 0;
}

bool UcxWorker::arm() { return arrived.empty() && !completed_ && ucp_.worker_arm(worker_) != ucx::Status::busy; }

bool UcxWorker::await(Clock::duration longest, const std::function<bool()>& condition) {
    const Clock::time_point ends = Clock::now() + longest;
    while (!condition()) {
        if (Clock::now() >= ends) return false;
        progress();
    }
    return true;
}

// ---- endings ---------------------------------------------------------------------------------------------------

void UcxWorker::on_error(void* peer, ucx::RemoteEndpoint*, ucx::Status status) {
    auto& failed = *static_cast<Peer*>(peer);
    UcxWorker& worker = *failed.worker;
    worker.fail(static_cast<std::uint32_t>(&failed - worker.peers_.data()), worker.ucp_.status_string(status));
}

void UcxWorker::fail(std::uint32_t rank, const std::string& reason) {
    Peer& peer = peers_[rank];
    if (!peer.failure.empty()) return;
    peer.failure = "UCX: " + reason;
    peer.failed_at = Clock::now();
}

void UcxWorker::disconnect(std::uint32_t rank) {
    peers_[rank].disconnected = true;
    close_endpoint(peers_[rank]);
}

void UcxWorker::close_endpoint(Peer& peer) {
    if (peer.endpoint == nullptr) return;
    ucx::RequestParameters parameters;
    parameters.fields = ucx::RequestParameters::has_flags;
    parameters.flags = ucx::RequestParameters::force;
    const ucx::StatusPointer result = ucp_.ep_close_nbx(peer.endpoint, &parameters);
    peer.endpoint = nullptr;
    if (ucx::status_of(result) == ucx::Status::in_progress) closing_.push_back(result);
}

bool UcxWorker::is_closing() {
    std::erase_if(closing_, [&](void* request) {
        if (ucp_.request_check_status(request) == ucx::Status::in_progress) return false;
        ucp_.request_free(request);
        return true;
    });
    return !closing_.empty() || unsent_ > 0;
}

}  // namespace unisono
