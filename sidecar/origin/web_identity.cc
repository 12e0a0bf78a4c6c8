#include "sidecar/origin/web_identity.h"

#include <mutex>
#include <utility>

#include <fmt/core.h>

#include "common/base/guarded.h"
#include "common/log/log.h"
#include "sidecar/origin/percent.h"
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

    Result<std::optional<Credentials>> get() override {
        if (auto held = usable()) {
            return *std::move(held);
        }
        const std::lock_guard one_at_a_time{asking_};
        if (auto held = usable()) {
            return *std::move(held);
        }
        auto request = exchange_request();
        if (!request) {
            return note(fail(request.error()));
        }
        auto response = client_->call(*std::move(request));
        return note(response ? answer_of(*response) : fail(response.error()));
    }

private:
    using Exchange = Result<TemporaryCredentials>;

    struct State {
        std::optional<TemporaryCredentials> held;
        std::optional<Error> failed;  // error of the last exchange
        TimePoint not_before{};       // earliest time of the next exchange
        bool refreshing = false;
    };

    // The answer of get() without waiting: valid credentials, or an error less than a second old.
    std::optional<Result<std::optional<Credentials>>> usable() {
        auto state = state_.lock();
        const bool may_ask = clock_->now() >= state->not_before;
        const WallTime now = clock_->wall_now();
        if (state->held && now < *state->held->expires - kUnusableBefore) {
            if (now >= *state->held->expires - kRefreshBefore && may_ask && !state->refreshing) {
                refresh(*state);
            }
            return state->held->credentials;
        }
        if (state->failed && !may_ask) {
            return fail(*state->failed);
        }
        return std::nullopt;
    }

    void refresh(State& state) {
        auto request = exchange_request();
        if (!request) {
            state.not_before = clock_->now() + kPauseWhileGood;
            return;
        }
        state.refreshing = true;
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
            static_cast<void>(note(status ? answer_of(*response) : fail(status.error())));
        };
        client_->start(*std::move(request), std::move(sink));
    }

    Result<std::optional<Credentials>> note(Exchange exchange) {
        auto state = state_.lock();
        state->refreshing = false;
        if (exchange) {
            state->held = *std::move(exchange);
            state->failed.reset();
            state->not_before = {};
            return state->held->credentials;
        }
        const Error error = exchange.error().prefixed(
            fmt::format("credentials: {} for role {}", identity_.endpoint, identity_.role_arn));
        const bool is_good =
            state->held && clock_->wall_now() < *state->held->expires - kUnusableBefore;
        state->not_before = clock_->now() + (is_good ? kPauseWhileGood : kPauseAfterFailure);
        if (is_good) {
            log::warning("credentials are not renewed yet", {{"error", error.message}});
        }
        state->failed = error;
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
    std::mutex asking_;
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
