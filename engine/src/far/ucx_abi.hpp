// The part of the binary interface of UCX 1.13 that the engine uses. Later versions of UCX 1 keep it.
//
// UCX is loaded at run time, so its headers are not needed to build. tests/engine/test_ucx_abi.py compares these
// declarations with the headers of UCX where they are installed.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace unisono::ucx {

struct Context;
struct Worker;
struct RemoteEndpoint;
struct Config;
struct Address;

enum class Status : signed char { ok = 0, in_progress = 1, busy = -15, canceled = -16, last_error = -100 };

// A pointer to a request in progress, nullptr for success, or an error status.
using StatusPointer = void*;
inline bool is_error(StatusPointer pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) >=
           static_cast<std::uintptr_t>(static_cast<std::intptr_t>(Status::last_error));
}
inline Status status_of(StatusPointer pointer) {
    if (pointer != nullptr && !is_error(pointer)) return Status::in_progress;
    return static_cast<Status>(reinterpret_cast<std::intptr_t>(pointer));
}

constexpr std::uint64_t bit(int number) { return std::uint64_t{1} << number; }

struct ContextParameters {
    static constexpr std::uint64_t has_features = bit(0), has_shared_workers = bit(5);
    static constexpr std::uint64_t wakeup = bit(4), active_messages = bit(6);
    std::uint64_t fields = 0;
    std::uint64_t features = 0;
    std::size_t request_size = 0;
    void (*request_init)(void*) = nullptr;
    void (*request_cleanup)(void*) = nullptr;
    std::uint64_t tag_sender_mask = 0;
    int workers_are_shared = 0;  // several threads have workers
    std::size_t endpoints = 0;
    std::size_t processes_per_node = 0;
    const char* name = nullptr;
    std::size_t node_local_id = 0;  // newer than 1.13
};

struct WorkerParameters {
    static constexpr std::uint64_t has_thread_mode = bit(0), has_alignment = bit(7);
    static constexpr int serialized = 1;
    std::uint64_t fields = 0;
    int thread_mode = 0;
    unsigned long cpus[1024 / (8 * sizeof(unsigned long))] = {};
    unsigned events = 0;
    void* user_data = nullptr;
    int event_descriptor = 0;
    std::uint64_t flags = 0;
    const char* name = nullptr;
    std::size_t alignment = 0;  // of the payload of an active message
    std::uint64_t client_id = 0;
};

using OnError = void (*)(void* argument, RemoteEndpoint* endpoint, Status status);

struct SocketAddress {
    const sockaddr* address = nullptr;
    socklen_t bytes = 0;
};

struct EndpointParameters {
    static constexpr std::uint64_t has_address = bit(0), has_error_mode = bit(1), has_error_handler = bit(2);
    static constexpr int report_failed_peer = 1;
    std::uint64_t fields = 0;
    const Address* address = nullptr;
    int error_mode = 0;
    OnError on_error = nullptr;
    void* on_error_argument = nullptr;
    void* user_data = nullptr;
    unsigned flags = 0;
    SocketAddress socket_address;
    void* connection_request = nullptr;
    const char* name = nullptr;
    SocketAddress local_address;
};

using OnSent = void (*)(void* request, Status status, void* user_data);

struct RequestParameters {
    static constexpr std::uint32_t has_callback = bit(1), has_user_data = bit(2), has_flags = bit(4),
                                   has_memory_kind = bit(6);
    static constexpr std::uint32_t eager = bit(1);  // of an active message: without a round trip before the payload
    static constexpr std::uint32_t force = bit(0);  // of the end of an endpoint: unsent messages are dropped
    static constexpr int host_memory = 0;
    std::uint32_t fields = 0;
    std::uint32_t flags = 0;
    void* request = nullptr;
    OnSent on_sent = nullptr;
    std::uint64_t datatype = 0;
    void* user_data = nullptr;
    void* reply_buffer = nullptr;
    int memory_kind = 0;
    void* received_bytes = nullptr;
    void* memory = nullptr;
    std::uint64_t newer[3] = {};  // than 1.13
};

struct ReceiveParameters {
    static constexpr std::uint64_t is_kept_data = bit(16), is_rendezvous = bit(17);
    std::uint64_t attributes;
    RemoteEndpoint* reply_endpoint;
};

using OnMessage = Status (*)(void* argument, const void* header, std::size_t header_bytes, void* data,
                             std::size_t bytes, const ReceiveParameters* parameters);

struct HandlerParameters {
    static constexpr std::uint64_t has_id = bit(0), has_flags = bit(1), has_callback = bit(2), has_argument = bit(3);
    static constexpr std::uint32_t whole_message = bit(0), persistent_data = bit(1);
    std::uint64_t fields = 0;
    unsigned id = 0;
    std::uint32_t flags = 0;
    OnMessage on_message = nullptr;
    void* argument = nullptr;
};

// The functions of libucp, and one of libucs.
struct Functions {
    void (*get_version)(unsigned* major, unsigned* minor, unsigned* release);
    Status (*config_read)(const char* prefix, const char* file, Config** config);
    Status (*config_modify)(Config* config, const char* name, const char* value);
    void (*config_release)(Config* config);
    Status (*init_version)(unsigned major, unsigned minor, const ContextParameters*, const Config*, Context**);
    void (*cleanup)(Context*);
    void (*context_print_info)(Context*, std::FILE*);
    Status (*worker_create)(Context*, const WorkerParameters*, Worker**);
    void (*worker_destroy)(Worker*);
    Status (*worker_get_address)(Worker*, Address**, std::size_t* bytes);
    void (*worker_release_address)(Worker*, Address*);
    Status (*worker_set_am_recv_handler)(Worker*, const HandlerParameters*);
    unsigned (*worker_progress)(Worker*);
    Status (*worker_get_efd)(Worker*, int* descriptor);
    Status (*worker_arm)(Worker*);
    Status (*ep_create)(Worker*, const EndpointParameters*, RemoteEndpoint**);
    StatusPointer (*ep_close_nbx)(RemoteEndpoint*, const RequestParameters*);
    StatusPointer (*am_send_nbx)(RemoteEndpoint*, unsigned id, const void* header, std::size_t header_bytes,
                                 const void* data, std::size_t count, const RequestParameters*);
    void (*am_data_release)(Worker*, void* data);
    Status (*request_check_status)(void* request);
    void (*request_free)(void* request);
    const char* (*status_string)(Status status);  // of libucs
};

}  // namespace unisono::ucx
