#include "sidecar/origin/remote_origin.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <new>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "common/http/http_client.h"
#include "sidecar/origin/concurrency_limit.h"
#include "sidecar/origin/fetch_scheduler.h"
#include "sidecar/origin/object_answer.h"

namespace stoker::sidecar {

namespace {

// Least capacity().fetches, even if the origin pushes back, because the engine counts the fetches
// that peers answer, too.
constexpr std::uint32_t kFetchesMin = 16;

// One object being fetched. Its destruction answers the fetch, unless that was answered before.
class ObjectFetch {
public:
    using Done = std::function<void(Result<OriginBytes>)>;

    ObjectFetch(const Origin& origin, OriginFetch wanted, Done done)
        : request(std::move(wanted)),
          origin_(origin),
          done_(std::move(done)) {}

    ~ObjectFetch() {
        if (!is_over()) {
            const Error closing{ErrorCode::kCancelled, "the origin is closing"};
            end(fail(fetch_error(origin_, request, closing, 1)));
        }
    }

    ObjectFetch(const ObjectFetch&) = delete;
    ObjectFetch& operator=(const ObjectFetch&) = delete;

    // Answers the fetch; results of running requests are ignored from then on.
    void end(Result<OriginBytes> result) { std::exchange(done_, nullptr)(std::move(result)); }

    [[nodiscard]] bool is_over() const { return done_ == nullptr; }

    const OriginFetch request;
    FetchId id{};
    std::vector<std::byte> payload{};  // each part writes its own range
    std::uint32_t parts_left = 0;
    std::uint32_t requests = 0;
    std::uint32_t attempts = 0;  // of the part with the most
    std::optional<Duration> first_byte{};

private:
    const Origin& origin_;
    Done done_;
};

using ObjectPtr = std::shared_ptr<ObjectFetch>;

// One request for an object, with its attempts.
struct PartFetch {
    ObjectPtr object;
    std::optional<ByteRange> range;
    std::uint32_t attempt;                   // number of the last one
    http::CallId call{};                     // of the last attempt
    std::shared_ptr<ObjectAnswer> answer{};  // of the last attempt
    ConcurrencyLimit::Ticket ticket{};
    bool has_arrived = false;
};

using PartPtr = std::shared_ptr<PartFetch>;

// The bytes that a part's request asks for, as offsets in the object at the origin.
ExpectedBytes expected_of(const OriginFetch& wanted, std::optional<ByteRange> part) {
    if (!wanted.slice) {
        return {wanted.etag, wanted.size_bytes, part};
    }
    ByteRange range = part.value_or(ByteRange{0, wanted.size_bytes});
    range.offset += wanted.slice->offset;
    return {wanted.etag, wanted.slice->object_bytes, range, wanted.slice->offset};
}

class RemoteOrigin final : public Origin {
public:
    RemoteOrigin(
        std::unique_ptr<const ObjectDialect> dialect,
        const OriginOptions& options,
        std::unique_ptr<CredentialSource> credentials,
        std::unique_ptr<http::HttpClient> client,
        const Clock& clock,
        std::uint64_t seed)
        : dialect_(std::move(dialect)),
          options_(options),
          clock_(&clock),
          next_list_seed_(seed),
          concurrency_({.max = std::max(options.max_in_flight, 1U)}),
          limit_(concurrency_.limit()),
          scheduler_({capacity().requests, options.bytes_in_flight_max}),
          random_(seed),
          credentials_(std::move(credentials)),
          client_(std::move(client)) {}

    // Once the client's thread has seen `closing_`, it uses neither the credentials nor the client.
    // The remaining objects answer their fetches when they are destroyed.
    ~RemoteOrigin() override {
        std::promise<void> seen;
        client_->run_at({}, [&] {
            closing_ = true;
            seen.set_value();
        });
        seen.get_future().wait();
        credentials_.reset();  // they may still call the client
        client_.reset();
    }

    RemoteOrigin(const RemoteOrigin&) = delete;
    RemoteOrigin& operator=(const RemoteOrigin&) = delete;

    [[nodiscard]] std::string describe() const override { return dialect_->describe(); }

    [[nodiscard]] bool has_key() const override { return !credentials_->is_missing(); }

    [[nodiscard]] OriginCapacity capacity() const override {
        OriginCapacity capacity = capacity_for(limit_, options_);
        capacity.fetches =
            std::max(capacity.fetches, std::min(kFetchesMin, options_.max_in_flight));
        return capacity;
    }

    Result<domain::Listing> list(
        const std::function<void(std::uint64_t)>& progress, std::stop_token stop) override {
        return dialect_->list(
            {options_, *credentials_, *client_, *clock_, Prng{++next_list_seed_}},
            progress,
            std::move(stop));
    }

    void fetch(OriginFetch request, ObjectFetch::Done done) override {
        run_at(
            {},
            [this,
             object = std::make_shared<ObjectFetch>(*this, std::move(request), std::move(done))] {
                admit(object);
            });
    }

private:
    // Any thread: runs `event` on the client's thread, then starts the requests that now have
    // room.
    template <class Event>
    void run_at(TimePoint when, Event event) {
        client_->run_at(when, [this, event = std::move(event)] { handle(event); });
    }

    template <class Event>
    void handle(const Event& event) {
        if (!closing_) {
            event();
            start_what_fits();
        }
    }

    void admit(const ObjectPtr& object);
    void schedule(const ObjectPtr& object);
    void start_what_fits();
    void send(const PartPtr& part);
    void on_ended(const PartPtr& part, const Status& transport);
    void on_failed(const PartPtr& part, const OriginFailure& failure);
    [[nodiscard]] std::optional<Duration> retry_delay(const FailedAttempt& attempt);
    void give_up(ObjectFetch& object, const Error& error, std::uint32_t attempts);
    void give_up_siblings(const ObjectFetch& object);
    void on_arrived(const PartPtr& part);
    void forget(const ObjectFetch& object);
    void release(const PartPtr& part);

    const std::unique_ptr<const ObjectDialect> dialect_;
    const OriginOptions options_;
    const Clock* clock_;
    std::atomic<std::uint64_t> next_list_seed_;

    // Only the client's thread uses the members below.
    bool closing_ = false;
    ConcurrencyLimit concurrency_;
    std::atomic<std::uint32_t> limit_;  // concurrency_'s limit; any thread reads it
    FetchScheduler scheduler_;
    Prng random_;
    std::uint64_t last_id_ = 0;
    std::unordered_map<FetchId, ObjectPtr> objects_;
    std::unordered_map<http::CallId, PartPtr> running_;
    std::unordered_set<PartPtr> retries_;  // parts that wait for their next attempt; the owner

    std::unique_ptr<CredentialSource> credentials_;
    std::unique_ptr<http::HttpClient> client_;
};

void RemoteOrigin::admit(const ObjectPtr& object) {
    const OriginFetch& wanted = object->request;
    object->id = FetchId{++last_id_};
    if (Bytes{wanted.size_bytes} > options_.object_bytes_max) {
        give_up(*object, too_large(wanted.size_bytes, options_), 1);
    } else if (wanted.attempts == 0) {
        schedule(object);
    } else if (const auto delay = retry_delay({wanted.attempts, true})) {
        run_at(clock_->now() + *delay, [this, object] { schedule(object); });
    } else {
        const char* message = "the bytes do not match the checksum stored at the origin";
        give_up(*object, {ErrorCode::kCorruption, message}, wanted.attempts);
    }
}

void RemoteOrigin::schedule(const ObjectPtr& object) {
    object->parts_left = scheduler_.part_count(object->request.size_bytes);
    objects_.emplace(object->id, object);
    scheduler_.add(object->id, object->request.size_bytes);
}

void RemoteOrigin::start_what_fits() {
    while (const auto next = scheduler_.next()) {
        const ObjectPtr object = objects_.at(next->fetch);
        const auto part =
            std::make_shared<PartFetch>(PartFetch{object, next->range, object->request.attempts});
        part->ticket = concurrency_.on_started(clock_->now());
        try {
            if ((next->range || object->request.slice) && next->first) {
                object->payload.resize(object->request.size_bytes);
            } else if (next->first) {
                object->payload.reserve(object->request.size_bytes);
            }
        } catch (const std::bad_alloc&) {
            on_failed(part, {{ErrorCode::kResourceExhausted, "not enough memory for the object"}});
            continue;
        }
        send(part);
    }
}

void RemoteOrigin::send(const PartPtr& part) {
    if (part->object->is_over()) {
        release(part);
        return;
    }
    const auto credentials =
        credentials_->try_get([this, part] { run_at({}, [this, part] { send(part); }); });
    if (!credentials) {
        return;
    }
    ++part->attempt;
    if (!*credentials) {
        on_failed(part, failure_of_transport(credentials->error()));
        return;
    }
    const OriginFetch& wanted = part->object->request;
    ExpectedBytes expected = expected_of(wanted, part->range);
    http::HttpRequest request =
        dialect_->get_request(wanted.key, expected, **credentials, clock_->wall_now());
    set_timeouts(request, options_);
    request.response_bytes_max = Bytes::unlimited();  // ObjectAnswer limits it
    ++part->object->requests;
    part->answer = std::make_shared<ObjectAnswer>(
        *dialect_, std::move(expected), part->object->payload, *clock_);
    http::HttpSink sink = sink_into(part->answer);
    sink.on_done = [this, part](const Status& transport) {
        handle([&] { on_ended(part, transport); });
    };
    part->call = client_->start(std::move(request), std::move(sink));
    running_.emplace(part->call, part);
}

void RemoteOrigin::on_ended(const PartPtr& part, const Status& transport) {
    running_.erase(part->call);
    if (options_.metrics != nullptr) {
        options_.metrics->requests.with({"get", part->answer->outcome(transport)})->add();
        options_.metrics->received_bytes.add(static_cast<double>(part->answer->received_bytes()));
    }
    if (part->object->is_over()) {
        release(part);
    } else if (const auto failure = part->answer->failure(transport, clock_->wall_now())) {
        on_failed(part, *failure);
    } else {
        on_arrived(part);
    }
}

void RemoteOrigin::on_failed(const PartPtr& part, const OriginFailure& failure) {
    if (failure.is_push_back()) {
        concurrency_.on_push_back(part->ticket, clock_->now());
    }
    if (const auto delay = retry_delay({part->attempt, failure.may_pass, failure.retry_after})) {
        retries_.insert(part);
        // The timer must not keep the payload of an object that was given up meanwhile.
        run_at(clock_->now() + *delay, [this, weak = std::weak_ptr{part}] {
            if (const PartPtr due = weak.lock(); due && retries_.erase(due) > 0) {
                send(due);
            }
        });
        return;
    }
    give_up(*part->object, failure.error, part->attempt);
    release(part);
    give_up_siblings(*part->object);
}

std::optional<Duration> RemoteOrigin::retry_delay(const FailedAttempt& attempt) {
    const auto delay = next_delay(options_.retry, attempt, random_);
    if (delay && options_.metrics != nullptr) {
        options_.metrics->retries.add();
    }
    return delay;
}

void RemoteOrigin::give_up(ObjectFetch& object, const Error& error, std::uint32_t attempts) {
    if (options_.metrics != nullptr) {
        options_.metrics->failed_objects.with({std::string{to_string(error.code)}})->add();
    }
    forget(object);
    object.end(fail(fetch_error(*this, object.request, error, attempts)));
}

// Cancels the running parts of a failed object; releases them when they end.
void RemoteOrigin::give_up_siblings(const ObjectFetch& object) {
    for (const auto& [call, running] : running_) {
        if (running->object.get() == &object) {
            client_->cancel(call);
        }
    }
    std::erase_if(retries_, [&](const PartPtr& retry) {
        const bool is_its = retry->object.get() == &object;
        if (is_its) {
            release(retry);
        }
        return is_its;
    });
}

void RemoteOrigin::on_arrived(const PartPtr& part) {
    ObjectFetch& object = *part->object;
    const Duration first_byte = part->answer->first_byte();
    if (!object.first_byte) {
        object.first_byte = first_byte;
    }
    if (options_.metrics != nullptr) {
        options_.metrics->first_byte_seconds.observe(
            std::chrono::duration<double>(first_byte).count());
    }
    part->has_arrived = true;
    object.attempts = std::max(object.attempts, part->attempt);
    if (--object.parts_left == 0) {
        forget(object);
        object.end(OriginBytes{
            std::move(object.payload),
            *object.first_byte,
            object.requests,
            part->range ? Duration::zero() : part->answer->duration(),
            part->answer->stored_checksum(),
            object.attempts});
    }
    release(part);
}

// Forgets the object; from then on, only its requests in flight keep it alive.
void RemoteOrigin::forget(const ObjectFetch& object) {
    scheduler_.remove(object.id);
    objects_.erase(object.id);
}

void RemoteOrigin::release(const PartPtr& part) {
    const std::uint64_t size_bytes = part->object->request.size_bytes;
    if (part->has_arrived) {
        const std::uint64_t bytes = part->range ? part->range->length : size_bytes;
        concurrency_.on_arrived(part->ticket, bytes, clock_->now());
    } else {
        concurrency_.on_abandoned(clock_->now());
    }
    limit_ = concurrency_.limit();
    scheduler_.part_ended(size_bytes);
    scheduler_.set_requests_max(capacity().requests);
}

}  // namespace

Result<std::unique_ptr<Origin>> make_remote_origin(
    std::unique_ptr<const ObjectDialect> dialect,
    std::string_view url,
    const OriginOptions& options,
    std::unique_ptr<CredentialSource> credentials,
    const Clock& clock,
    std::uint64_t seed) {
    http::ClientOptions asked_by = client_options(options, url);
    asked_by.idle_connections = capacity_for(options.max_in_flight, options).requests + 1;
    STOKER_TRY(auto client, http::make_curl_client(std::move(asked_by), clock));
    return std::unique_ptr<Origin>{std::make_unique<RemoteOrigin>(
        std::move(dialect), options, std::move(credentials), std::move(client), clock, seed)};
}

}  // namespace stoker::sidecar
