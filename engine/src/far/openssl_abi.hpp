// The part of the interface of OpenSSL 3 that the engine uses. It is the same in all versions 3.x. It is declared here
// so that building does not need OpenSSL.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::openssl {

struct Context;      // SSL_CTX
struct Connection;   // SSL
struct Method;       // SSL_METHOD
struct Bio;          // BIO, an input and output of bytes
struct BioMethod;    // BIO_METHOD
struct Certificate;  // X509
struct DigestKind;   // EVP_MD

inline constexpr long tls_1_3 = 0x0304;
// Commands of SSL_CTX_ctrl.
inline constexpr int set_mode = 33, set_read_ahead = 41, set_oldest_version = 123;
// Modes: a write returns after each record, and may be repeated from another address.
inline constexpr long partial_write = 1, moving_buffer = 2;
// Options. A connection may end without a closing message of TLS: letters state their lengths, and processes that end
// in good order say farewell.
inline constexpr std::uint64_t ignore_unexpected_end = 1u << 7;
inline constexpr int pem_file = 1;
inline constexpr int verify_peer = 1, require_certificate = 2;
inline constexpr int error_of_library = 1, wants_read = 2, wants_write = 3, error_of_system = 5, connection_ended = 6;
inline constexpr int key_update_one_way = 0;
inline constexpr long certificate_is_valid = 0;

inline constexpr int bio_source_and_sink = 0x0400;
inline constexpr int bio_read = 0x01, bio_write = 0x02, bio_retry = 0x08, bio_all_flags = 0x0f;
inline constexpr int bio_flush = 11;  // a command of a BIO

struct Functions {
    const char* (*version)(int);
    const Method* (*any_method)();
    Context* (*context_new)(const Method*);
    void (*context_free)(Context*);
    long (*context_control)(Context*, int command, long value, void*);
    std::uint64_t (*context_set_options)(Context*, std::uint64_t);
    int (*context_set_ticket_count)(Context*, std::size_t);
    void (*context_set_read_buffer)(Context*, std::size_t);
    void (*context_set_password_callback)(Context*, int (*)(char*, int, int, void*));
    int (*context_use_certificates)(Context*, const char* path);
    int (*context_use_key)(Context*, const char* path, int kind);
    int (*context_check_key)(const Context*);
    int (*context_trust)(Context*, const char* file, const char* folder);
    void (*context_set_verify)(Context*, int mode, void*);
    Connection* (*connection_new)(Context*);
    void (*connection_free)(Connection*);
    void (*be_client)(Connection*);
    void (*be_server)(Connection*);
    void (*set_bio)(Connection*, Bio* input, Bio* output);
    int (*shake_hands)(Connection*);
    int (*read)(Connection*, void*, int);
    int (*write)(Connection*, const void*, int);
    int (*get_error)(const Connection*, int result);
    int (*has_pending)(const Connection*);
    int (*update_key)(Connection*, int kind);
    long (*get_verify_result)(const Connection*);
    const char* (*describe_verify_result)(long);
    Certificate* (*get_peer_certificate)(const Connection*);
    void (*certificate_free)(Certificate*);
    int (*certificate_digest)(const Certificate*, const DigestKind*, unsigned char*, unsigned*);
    const DigestKind* (*sha256)();
    BioMethod* (*bio_method_new)(int kind, const char* name);
    void (*bio_method_free)(BioMethod*);
    int (*bio_method_set_read)(BioMethod*, int (*)(Bio*, char*, int));
    int (*bio_method_set_write)(BioMethod*, int (*)(Bio*, const char*, int));
    int (*bio_method_set_control)(BioMethod*, long (*)(Bio*, int, long, void*));
    Bio* (*bio_new)(const BioMethod*);
    void (*bio_set_data)(Bio*, void*);
    void* (*bio_get_data)(Bio*);
    void (*bio_set_init)(Bio*, int);
    void (*bio_set_flags)(Bio*, int);
    void (*bio_clear_flags)(Bio*, int);
    unsigned long (*take_error)();
    void (*clear_errors)();
    const char* (*describe_error)(unsigned long);
};

// Returns the functions of the library that this process has already loaded, or else of the system's library, which is
// loaded once. Throws std::runtime_error.
const Functions& functions();

}  // namespace unisono::openssl
