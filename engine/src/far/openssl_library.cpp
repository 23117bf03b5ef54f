// Loads OpenSSL.
#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <type_traits>

#include "openssl_abi.hpp"

namespace unisono {

namespace {

constexpr const char tls_library[] = "libssl.so.3", crypto_library[] = "libcrypto.so.3";

// Opens a library of OpenSSL: the one that this process has already loaded (Python's module ssl loads it), or else the
// one of the system.
void* open_library(const char* name) {
    const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    void* library = ::dlopen(name, flags | RTLD_NOLOAD);
    if (library == nullptr) library = ::dlopen(name, flags);
    if (library == nullptr) throw std::runtime_error(std::string("OpenSSL 3 cannot be loaded: ") + ::dlerror());
    return library;
}

openssl::Functions load_functions() {
    void* const crypto = open_library(crypto_library);
    void* const tls = open_library(tls_library);
    const auto look_up = [](void* library, const char* name, auto*& function) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
        if (function == nullptr) throw std::runtime_error(std::string("OpenSSL has no function ") + name);
    };
    openssl::Functions call{};
    look_up(crypto, "OpenSSL_version", call.version);
    look_up(tls, "TLS_method", call.any_method);
    look_up(tls, "SSL_CTX_new", call.context_new);
    look_up(tls, "SSL_CTX_free", call.context_free);
    look_up(tls, "SSL_CTX_ctrl", call.context_control);
    look_up(tls, "SSL_CTX_set_options", call.context_set_options);
    look_up(tls, "SSL_CTX_set_num_tickets", call.context_set_ticket_count);
    look_up(tls, "SSL_CTX_set_default_read_buffer_len", call.context_set_read_buffer);
    look_up(tls, "SSL_CTX_set_default_passwd_cb", call.context_set_password_callback);
    look_up(tls, "SSL_CTX_use_certificate_chain_file", call.context_use_certificates);
    look_up(tls, "SSL_CTX_use_PrivateKey_file", call.context_use_key);
    look_up(tls, "SSL_CTX_check_private_key", call.context_check_key);
    look_up(tls, "SSL_CTX_load_verify_locations", call.context_trust);
    look_up(tls, "SSL_CTX_set_verify", call.context_set_verify);
    look_up(tls, "SSL_new", call.connection_new);
    look_up(tls, "SSL_free", call.connection_free);
    look_up(tls, "SSL_set_connect_state", call.be_client);
    look_up(tls, "SSL_set_accept_state", call.be_server);
    look_up(tls, "SSL_set_bio", call.set_bio);
    look_up(tls, "SSL_do_handshake", call.shake_hands);
    look_up(tls, "SSL_read", call.read);
    look_up(tls, "SSL_write", call.write);
    look_up(tls, "SSL_get_error", call.get_error);
    look_up(tls, "SSL_has_pending", call.has_pending);
    look_up(tls, "SSL_key_update", call.update_key);
    look_up(tls, "SSL_get_verify_result", call.get_verify_result);
    look_up(tls, "SSL_get1_peer_certificate", call.get_peer_certificate);
    look_up(crypto, "X509_verify_cert_error_string", call.describe_verify_result);
    look_up(crypto, "X509_free", call.certificate_free);
    look_up(crypto, "X509_digest", call.certificate_digest);
    look_up(crypto, "EVP_sha256", call.sha256);
    look_up(crypto, "BIO_meth_new", call.bio_method_new);
    look_up(crypto, "BIO_meth_free", call.bio_method_free);
    look_up(crypto, "BIO_meth_set_read", call.bio_method_set_read);
    look_up(crypto, "BIO_meth_set_write", call.bio_method_set_write);
    look_up(crypto, "BIO_meth_set_ctrl", call.bio_method_set_control);
    look_up(crypto, "BIO_new", call.bio_new);
    look_up(crypto, "BIO_set_data", call.bio_set_data);
    look_up(crypto, "BIO_get_data", call.bio_get_data);
    look_up(crypto, "BIO_set_init", call.bio_set_init);
    look_up(crypto, "BIO_set_flags", call.bio_set_flags);
    look_up(crypto, "BIO_clear_flags", call.bio_clear_flags);
    look_up(crypto, "ERR_get_error", call.take_error);
    look_up(crypto, "ERR_clear_error", call.clear_errors);
    look_up(crypto, "ERR_reason_error_string", call.describe_error);
    return call;
}

}  // namespace

const openssl::Functions& openssl::functions() {
    static const Functions loaded = load_functions();
    return loaded;
}

}  // namespace unisono
