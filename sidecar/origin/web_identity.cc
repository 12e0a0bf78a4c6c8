#include "sidecar/origin/web_identity.h"

#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "common/base/guarded.h"
#include "common/log/log.h"
#include "sidecar/origin/s3_request.h"
#include "sidecar/origin/sts_answer.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kRefreshBefore = std::chrono::minutes{5};
constexpr Duration kUnusableBefore = std::chrono::seconds{30};
constexpr Duration kPauseAfterFailure = std::chrono::seconds{1};
constexpr Duration kPauseWhileGood = std::chrono::seconds{10};  // while the credentials are valid
constexpr Duration kExchangeTimeout = std::chrono::seconds{10};
constexpr Bytes kAnswerBytesMax = kib(64);

class WebIdentitySource final : public CredentialSource {
public:
    WebIdentitySource(
        WebIdentity identity, std::unique_ptr<http::HttpClient> client, const Clock& clock)
        : identity_(std::move(identity)),
          clock_(&clock),
          client_(std::move(client)) {}

    std::optional<Answer> try_get(std::function<void()> ready) override {
        auto state = state_.lock();
        if (auto held = usable(*state)) {
            return held;
        }
        if (!state->asking) {
            if (const Status started = ask(*state); !started) {
                return note(*state, fail(started.error()));
            }
        }
        state->waiting.push_back(std::move(ready));
        return std::nullopt;
    }

private:
    using Exchange = Result<TemporaryCredentials>;

    struct State {
        std::optional<TemporaryCredentials> held;
        std::optional<Error> failed;  // error of the last exchange
        TimePoint not_before{};       // earliest time of the next exchange
        bool asking = false;          // an exchange is running
        std::vector<std::function<void()>> waiting;
    };

    // Valid credentials, renewed in the background, or an error less than a second old.
    std::optional<Answer> usable(State& state) {
        const bool may_ask = clock_->now() >= state.not_before;
        const WallTime now = clock_->wall_now();
        if (state.held && now < *state.held->expires - kUnusableBefore) {
            const bool is_due = now >= *state.held->expires - kRefreshBefore;
            if (is_due && may_ask && !state.asking && !ask(state)) {
                state.not_before = clock_->now() + kPauseWhileGood;
            }
            return Answer{state.held->credentials};
        }
        if (state.failed && !may_ask) {
            return Answer{fail(*state.failed)};
        }
        return std::nullopt;
    }

    static Error unusable(WallTime expires) {
        return {
            ErrorCode::kForbidden,
            fmt::format(
                "the credentials expire at {:%FT%TZ}, which is past or less than 30 s away: is the "
                "clock right?",
                std::chrono::floor<std::chrono::seconds>(expires))};
    }

    // Starts an exchange of the token for credentials.
    Status ask(State& state) {
        STOKER_TRY(auto request, exchange_request());
        state.asking = true;
        const auto response = std::make_shared<http::HttpResponse>();
        http::HttpSink sink;
        sink.on_response = [response](int status, const http::Headers&) {
            response->status = status;
        };
        sink.on_data = [response](std::span<const std::byte> data) {
            response->body.append(reinterpret_cast<const char*>(data.data()), data.size());
            return true;
        };
        sink.on_done = [this, response](const Status& status) {
            settle(status ? answer_of(*response) : fail(status.error()));
        };
        client_->start(std::move(request), std::move(sink));
        return {};
    }

    void settle(Exchange exchange) {
        std::vector<std::function<void()>> waiting;
        {
            auto state = state_.lock();
            state->asking = false;
            static_cast<void>(note(*state, std::move(exchange)));
            waiting = std::exchange(state->waiting, {});
        }
        for (const auto& ready : waiting) {
            ready();
        }
    }

    Answer note(State& state, Exchange exchange) {
        const WallTime now = clock_->wall_now();
        if (exchange && now >= *exchange->expires - kUnusableBefore) {
            exchange = fail(unusable(*exchange->expires));
        }
        if (exchange) {
            state.held = *std::move(exchange);
            state.failed.reset();
            state.not_before = clock_->now() + kPauseWhileGood;
            return state.held->credentials;
        }
        const Error error = exchange.error().prefixed(
            fmt::format("credentials: {} for role {}", identity_.endpoint, identity_.role_arn));
        const bool is_good = state.held && now < *state.held->expires - kUnusableBefore;
        state.not_before = clock_->now() + (is_good ? kPauseWhileGood : kPauseAfterFailure);
        if (is_good) {
            log::warning("credentials are not renewed yet", {{"error", error.message}});
        }
        state.failed = error;
        return fail(error);
    }

    [[nodiscard]] Result<http::HttpRequest> exchange_request() const {
        STOKER_TRY(const std::string token, read_small_file(identity_.token_file));
        http::HttpRequest request;
        request.method = "POST";
        request.url = identity_.endpoint;
        request.headers = {
            {"Content-Type", "application/x-www-form-urlencoded"}, {"Accept", "application/xml"}};
        request.body = fmt::format(
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}"
            "&WebIdentityToken={}",
            percent_encode(identity_.role_arn, false),
            percent_encode(identity_.session_name, false),
            percent_encode(token, false));
        request.total_timeout = kExchangeTimeout;
        request.response_bytes_max = kAnswerBytesMax;
        return request;
    }

    static Exchange answer_of(const http::HttpResponse& response) {
        if (response.status != 200) {
            return fail(sts_refusal(response.status, response.body));
        }
        return parse_sts_credentials(response.body);
    }

    const WebIdentity identity_;
    const Clock* clock_;
    Guarded<State> state_;
    std::unique_ptr<http::HttpClient> client_;  // last: its callbacks use the members above
};

}  // namespace

std::optional<WebIdentity> web_identity_from_environment(
    const Environment& environment, std::string_view region) {
    const auto value = [&environment](const char* name) { return variable(environment, name); };
    WebIdentity identity;
    identity.role_arn = value("AWS_ROLE_ARN");
    identity.token_file = value("AWS_WEB_IDENTITY_TOKEN_FILE");
    if (identity.role_arn.empty() || identity.token_file.empty()) {
        return std::nullopt;
    }
    if (auto name = value("AWS_ROLE_SESSION_NAME"); !name.empty()) {
        identity.session_name = std::move(name);
    }
    identity.endpoint = value("AWS_ENDPOINT_URL_STS");
    if (!identity.endpoint.empty()) {
        return identity;
    }
    std::string own{region};
    for (const char* name : {"AWS_DEFAULT_REGION", "AWS_REGION"}) {
        own = value(name).empty() ? own : value(name);
    }
    identity.endpoint = value("AWS_STS_REGIONAL_ENDPOINTS") == "legacy"
                            ? "https://sts.amazonaws.com/"
                            : fmt::format("https://sts.{}{}/", own, amazon_domain(own));
    return identity;
}

std::unique_ptr<CredentialSource> credentials_from_web_identity(
    WebIdentity identity, std::unique_ptr<http::HttpClient> client, const Clock& clock) {
    return std::make_unique<WebIdentitySource>(std::move(identity), std::move(client), clock);
}

}  // namespace stoker::sidecar
