// The far channels of one endpoint: their messages leave and arrive as letters.
//
// *Out channel*: from this rank to a far rank. A message leaves once the reader has room for it, which it reports as
// *credit*: the number of messages it has taken. To the endpoint, a message is taken when the transport no longer needs
// its payload.
//
// *In channel*: from a far rank to this rank. Letters are published in the order of their numbers, as many as the
// channel holds; the payload of a long one stays where the transport has put it until the endpoint has taken it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unisono/courier.hpp"
#include "unisono/endpoint.hpp"

namespace unisono {

class FarChannels : public FarLink {
  public:
    FarChannels(Courier& courier, Endpoint& endpoint);
    ~FarChannels() override;

    void push(std::uint32_t rank) override;
    void poll() override { courier_.poll(); }
    void hand_over() override { courier_.hand_over(); }
    void finish_call() override { courier_.finish_call(); }
    void opened(std::uint32_t rank, std::size_t track, bool incoming) override;
    void ask_entry(std::uint32_t rank, std::uint64_t call) override;
    bool refresh_board(std::uint32_t rank) override;
    std::string lost(std::uint32_t rank) override;
    std::string host(std::uint32_t rank) const override;
    bool has_left(std::uint32_t rank) override;
    FaultReport settle(const FaultReport& noticed) override;
    void leave() override;
    std::uint64_t sent_bytes() const override { return sent_bytes_.load(std::memory_order_relaxed); }

  private:
    friend class Courier;

    struct OutChannel {
        bool open = false;
        std::uint64_t sent = 0;  // given to the transport
        std::uint64_t left = 0;  // no longer needed by it
        std::uint64_t acknowledged = 0;
    };
    struct Arrived {
        Label label;
        std::array<std::byte, MessageHeader::inline_bytes> short_payload;
        Payload payload;
    };
    struct InChannel {
        bool open = false;
        std::map<std::uint64_t, Arrived> arrived;  // not published yet, by number
        std::uint64_t received = 0;
        std::uint64_t published = 0;
        std::uint64_t released = 0;
        std::deque<Payload> held;    // of the published messages, from `released` on
        std::uint64_t reported = 0;  // the count that the writer knows
    };
    struct Peer {
        bool far = false;
        std::uint32_t job_rank = 0;
        std::vector<OutChannel> out;  // by track; the last one is for send and recv
        std::vector<InChannel> in;
        std::optional<std::uint64_t> closed;  // messages that it has sent before it closed
        std::uint64_t asked_entry = 0;        // the call whose entry it wants to know; 0: none
        std::uint64_t states = 0;             // boards received from it
    };

    // All of these run under the lock of the courier.
    void service(std::uint32_t rank);
    void service_neglected();
    bool answer_questions();  // returns whether questions remain
    void send_messages(Peer& peer, std::uint32_t rank, std::size_t track);
    void take_back(Peer& peer, std::uint32_t rank, std::size_t track);
    void publish_arrived(Peer& peer, std::uint32_t rank, std::size_t track);
    void on_letter(const Label& label, Payload payload);
    void on_message(Peer& peer, std::uint32_t rank, std::size_t track, const Label& label, Payload payload);
    void on_sent(std::uint32_t job_rank, const Label& label);
    void on_lost(std::uint32_t job_rank);
    void on_fault(std::uint32_t rank, const Label& label, const std::byte* payload);
    void send_verdict(const FaultReport& report, std::int64_t except = -1);
    void send_state(std::uint32_t rank);
    void write_state(std::uint32_t rank, const Label& label, const std::byte* payload);

    Label label_to(const Peer& peer, LetterKind kind, std::size_t track = 0) const;
    void send(std::uint32_t rank, LetterKind kind, std::uint64_t number = 0, std::vector<std::byte> payload = {});
    std::size_t channel_number(std::uint32_t from, std::uint32_t to, std::size_t track) const {
        return endpoint_.layout.between(from, to, track);
    }
    std::size_t transfers() const { return endpoint_.settings.geometry.tracks; }  // the "track" of send and recv
    std::size_t track_of(const Label& label) const;
    MessageHeader* headers(std::size_t channel) const;
    Taken& taken(std::size_t channel) const;
    std::uint32_t rank_of(std::uint32_t job_rank) const;
    std::uint32_t own_rank() const { return endpoint_.settings.rank; }
    std::uint32_t size() const { return endpoint_.settings.geometry.size; }

    Courier& courier_;
    Endpoint& endpoint_;
    std::vector<Peer> peers_;
    std::unique_ptr<std::atomic<bool>[]> neglected_;
    std::map<std::uint32_t, std::uint32_t> ranks_;  // by rank in the job
    std::optional<FaultReport> verdict_;
    std::atomic<std::uint64_t> sent_bytes_ = 0;
    bool leaving_ = false;
};

}  // namespace unisono
