#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <curl/curl.h>

#include "common/base/clock.h"
#include "sidecar/origin/make_origin.h"
#include "sidecar/s3/byte_reader.h"
#include "sidecar/s3/forward_bound.h"
#include "sidecar/s3/s3_call.h"

// One request passed through to the origin on the calling thread, in bounded memory. Private to
// sidecar/s3.
namespace stoker::s3 {

struct CurlEasyDeleter {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};

using CurlEasy = std::unique_ptr<CURL, CurlEasyDeleter>;

class ForwardCall {
public:
    // `socket` does not block; `buffered`: bytes read from it after the request's head. `patience`:
    // longest wait for a byte, on both sides. `is_stopping`: ends the transfer within a second. The
    // references must outlive this object. `call`: the result of bound_call(). If the response's
    // head was already sent, only body bytes follow, or the connection is closed.
    ForwardCall(
        int socket,
        std::string buffered,
        const S3Call& call,
        const sidecar::S3Access& origin,
        std::string request_id,
        const ForwardBound& bound,
        Duration patience,
        const std::atomic<bool>& is_stopping);
    ForwardCall(const ForwardCall&) = delete;
    ForwardCall& operator=(const ForwardCall&) = delete;

    // Sends the request to the origin and its response to the client. The handle keeps its
    // connections for the next call. If the origin does not answer, the client gets 503 SlowDown.
    void run(CURL* easy, WallTime now);

    // Whether the client's connection can serve another request, which begins with take_rest().
    [[nodiscard]] bool can_go_on() const { return can_go_on_; }

    // Whether the origin has another version of the object than `bound` names.
    [[nodiscard]] bool has_changed() const {
        return !bound_.etag.empty() && (status_ == 412 || has_other_etag_);
    }

    std::string take_rest() { return socket_reader_.take_rest(); }

private:
    static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
    static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
    static std::size_t on_upload(char* data, std::size_t size, std::size_t count, void* self);
    static int on_progress(
        void* self, curl_off_t total, curl_off_t got, curl_off_t upload, curl_off_t sent);

    void prepare(CURL* easy, const struct ForwardRequest& request);
    void prepare_transport(CURL* easy, const std::string& url) const;
    void perform(CURL* easy);
    bool take_header(std::string_view line);
    bool send_head();
    [[nodiscard]] bool begin_rest() const;
    bool take_rest_body(std::string_view data);
    bool take_body(std::string_view data);
    void refuse(const std::string& why);
    void finish_body();
    bool send(std::string_view bytes);

    int socket_;
    const S3Call& call_;
    const sidecar::S3Access& origin_;
    std::string request_id_;
    const ForwardBound& bound_;
    Duration patience_;
    const std::atomic<bool>& is_stopping_;
    SocketReader socket_reader_;
    std::unique_ptr<ByteReader> framed_;   // body after removing its transfer coding
    std::unique_ptr<ByteReader> decoded_;  // and after removing aws-chunked, if that is decoded
    ByteReader* body_ = nullptr;           // nullptr: no body
    bool body_is_over_ = true;
    bool continue_is_due_ = false;
    int status_ = 0;
    std::string head_;  // head of the response, while it arrives
    bool has_length_ = false;
    bool head_is_sent_ = false;
    bool client_failed_ = false;
    bool has_other_etag_ = false;  // the origin's version is not bound_.etag
    bool has_range_ = false;       // the answer has the range of the remaining bytes
    std::uint64_t rest_left_ = 0;
    bool can_go_on_ = false;
};

}  // namespace stoker::s3
