#include "sidecar/origin/http_listing.h"

#include <future>
#include <memory>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "common/domain/http_index.h"
#include "sidecar/origin/http_answer.h"
#include "sidecar/origin/http_heads.h"

namespace stoker::sidecar {

namespace {

// The objects of an index, by whether the index has all data.
struct IndexedObjects {
    domain::Listing known;    // with size and version
    domain::Listing unknown;  // without version; size_bytes may be kUnknownBytes
};

// Checks an answer's head. Returns why it cannot be an index; nullopt: it may be one.
std::optional<OriginFailure> check_index_head(int status, const http::Headers& headers) {
    if (auto failure = check_plain(status, headers)) {
        return failure;
    }
    const std::string* coding = http::find_header(headers, "Transfer-Encoding");
    const bool is_chunked = coding != nullptr && http::equal_ignoring_case(*coding, "chunked");
    if (!is_chunked && http::find_header(headers, "Content-Length") == nullptr) {
        return refuse(
            "the answer has neither Content-Length nor chunks, so a cut would not be noticed");
    }
    return check_no_page(headers);
}

// One answer to a request for the index. Used by one thread at a time.
class IndexAnswer {
public:
    explicit IndexAnswer(const std::string& name)
        : reader_(name) {}

    void take_head(int status, const http::Headers& headers, WallTime now) {
        status_ = status;
        if (status < 200 || status >= 300) {
            failure_ = failure_of_http_status(status, headers, now);
        } else {
            failure_ = check_index_head(status, headers);
        }
    }

    // Takes a piece of the body. False: no more is wanted.
    bool take_body(std::string_view piece) {
        if (!failure_) {
            note(reader_.read(piece, take_entry()));
        }
        return !failure_;
    }

    // Call it when the answer has ended.
    std::optional<OriginFailure> end(const Status& transport) {
        if (!failure_ && !transport) {
            failure_ = failure_of_transport(transport.error());
        }
        if (!failure_) {
            note(reader_.finish(take_entry()));
        }
        return failure_;
    }

    [[nodiscard]] int status() const { return status_; }

    IndexedObjects take_objects() { return std::move(objects_); }

private:
    domain::HttpIndexReader::Take take_entry() {
        return [this](const domain::HttpIndexEntry& entry) {
            const std::uint64_t size_bytes = entry.size_bytes.value_or(kUnknownBytes);
            return entry.version.empty() ? objects_.unknown.add(entry.key, size_bytes, "")
                                         : objects_.known.add(entry.key, size_bytes, entry.version);
        };
    }

    void note(const Status& read) {
        if (!read) {
            failure_ = OriginFailure{read.error()};
        }
    }

    domain::HttpIndexReader reader_;
    IndexedObjects objects_;
    int status_ = 0;
    std::optional<OriginFailure> failure_;
};

// Sends the request, and waits until the client has dropped the answer's sink.
std::optional<OriginFailure> ask_for_index(
    const HttpLocation& location,
    const ListingContext& context,
    IndexAnswer& answer,
    const std::stop_token& stop) {
    const auto credentials = context.credentials.get();
    if (!credentials) {
        return failure_of_transport(credentials.error());
    }
    http::HttpRequest request = http_request(location, "GET", location.index, *credentials);
    set_timeouts(request, context.options);
    // No limit here: Listing limits the keys, and HttpIndexReader limits lines.
    request.response_bytes_max = Bytes::unlimited();
    // Shared, because set_value() may still run after get() has returned.
    const auto done = std::make_shared<std::promise<Status>>();
    std::future<Status> over = done->get_future();
    http::HttpSink sink;
    sink.on_response = [&](int status, const http::Headers& headers) {
        answer.take_head(status, headers, context.clock.wall_now());
    };
    sink.on_data = [&answer](std::span<const std::byte> data) {
        return answer.take_body({reinterpret_cast<const char*>(data.data()), data.size()});
    };
    sink.on_done = [done](Status status) { done->set_value(std::move(status)); };
    const http::CallId call = context.client.start(std::move(request), std::move(sink));
    const std::stop_callback cancel{stop, [&context, call] { context.client.cancel(call); }};
    const Status transport = over.get();
    count_request(
        context,
        "list",
        answer.status() != 0 ? std::to_string(answer.status())
                             : std::string{to_string(transport.error().code)});
    return answer.end(transport);
}

Result<IndexedObjects> read_index(
    const HttpLocation& location, ListingContext& context, const std::stop_token& stop) {
    for (std::uint32_t attempt = 1;; ++attempt) {
        IndexAnswer answer{location.index};
        const auto failure = ask_for_index(location, context, answer, stop);
        if (!failure) {
            return answer.take_objects();
        }
        if (const auto error = wait_for_retry(context, attempt, *failure, stop)) {
            return fail(error->prefixed(fmt::format("'{}'", location.index)));
        }
    }
}

Result<domain::Listing> list_objects(
    const HttpLocation& location,
    ListingContext& context,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop) {
    STOKER_TRY(IndexedObjects objects, read_index(location, context, stop));
    STOKER_TRY_VOID(ask_heads(location, context, objects.unknown, objects.known, progress, stop));
    if (progress) {
        progress(objects.known.size());
    }
    return std::move(objects.known);
}

}  // namespace

Result<domain::Listing> list_http(
    const HttpLocation& location,
    ListingContext context,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop) {
    auto listed = list_objects(location, context, progress, stop);
    return listed ? std::move(listed)
                  : fail(listed.error().prefixed(fmt::format("listing {}", location.root)));
}

}  // namespace stoker::sidecar
