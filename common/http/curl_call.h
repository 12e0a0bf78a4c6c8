#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <curl/curl.h>

#include "common/http/http_client.h"

// One transfer of a curl client: its easy handle, request and progress. Private to common/http.
namespace stoker::http {

struct CurlEasyDeleter {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};

using CurlEasy = std::unique_ptr<CURL, CurlEasyDeleter>;

struct CurlMultiDeleter {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

using CurlMulti = std::unique_ptr<CURLM, CurlMultiDeleter>;

// Initialises libcurl, once per process, and reads options.ca_file into ca_pem. kInvalidArgument:
// the file cannot be read.
Result<ClientOptions> ready_options(ClientOptions options);

// Stays on one thread at a fixed address, because curl's callbacks keep a pointer to it.
class CurlCall {
public:
    CurlCall(
        CallId id,
        HttpRequest request,
        HttpSink sink,
        const ClientOptions& options,
        const Clock& clock);
    ~CurlCall();
    CurlCall(const CurlCall&) = delete;
    CurlCall& operator=(const CurlCall&) = delete;

    // Sets `easy` up for this request. `fresh_connection` refuses every pooled connection.
    Status prepare(CurlEasy easy, bool fresh_connection);

    [[nodiscard]] CallId id() const { return id_; }

    [[nodiscard]] CURL* easy() const { return easy_.get(); }

    CurlEasy release_easy() { return std::move(easy_); }

    // The call's deadline if no more data arrives; TimePoint::max() if none.
    [[nodiscard]] TimePoint deadline() const;

    // The error of a call whose deadline has passed at `now`.
    [[nodiscard]] Error expiry(TimePoint now) const;

    // Maps curl's result code to a Status.
    [[nodiscard]] Status outcome(CURLcode code) const;

    // True if curl gave up on a series of dead pooled connections before any byte was sent or
    // received: one retry on a fresh connection is safe.
    [[nodiscard]] bool may_restart(CURLcode code) const;

    // Calls the sink's on_done with the result. Call it exactly once.
    void finish(Status status);

private:
    static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
    static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
    static std::size_t on_upload(char* data, std::size_t size, std::size_t count, void* self);
    static int on_socket(void* self, curl_socket_t socket, curlsocktype purpose);
    static curl_socket_t on_open(void* self, curlsocktype purpose, curl_sockaddr* address);

    template <class Take>
    bool without_throwing(Take&& take);
    bool take_header(std::string_view line);
    bool take_body(std::span<const std::byte> data);
    [[nodiscard]] bool may_reach(const sockaddr& address) const;
    [[nodiscard]] bool will_redirect() const;
    void set_request_options();
    void set_redirect_options();
    void set_body_options();
    void set_transport_options();
    Status set_tls_options();

    CallId id_;
    HttpRequest request_;
    HttpSink sink_;
    const ClientOptions* options_;
    const Clock* clock_;
    CurlEasy easy_;
    curl_slist* header_list_ = nullptr;
    std::string curl_words_;  // curl's error text: buffer of CURL_ERROR_SIZE bytes

    TimePoint started_;
    TimePoint last_byte_;
    int status_ = 0;
    Headers response_headers_;
    std::size_t header_bytes_ = 0;
    std::uint64_t body_bytes_ = 0;
    std::size_t sent_bytes_ = 0;
    bool responded_ = false;
    bool fresh_connection_ = false;
    Status verdict_{};  // set when one of our own callbacks ended the transfer
};

}  // namespace stoker::http
