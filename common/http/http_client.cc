#include "common/http/http_client.h"

#include <future>
#include <memory>
#include <utility>

#include "common/base/check.h"

namespace stoker::http {

Result<HttpResponse> HttpClient::call(HttpRequest request, std::stop_token stop) {
    STOKER_CHECK(!on_callback_thread(), "call() would wait for its own thread");
    HttpResponse response;
    // Shared, because set_value() may still run after get() has returned.
    const auto done = std::make_shared<std::promise<Status>>();
    std::future<Status> finished = done->get_future();
    HttpSink sink;
    sink.on_response = [&response](int status, const Headers& headers) {
        response.status = status;
        response.headers = headers;
    };
    sink.on_data = [&response](std::span<const std::byte> data) {
        response.body.append(reinterpret_cast<const char*>(data.data()), data.size());
        return true;
    };
    sink.on_done = [done](Status status) { done->set_value(std::move(status)); };
    const CallId id = start(std::move(request), std::move(sink));
    const std::stop_callback cancel_on_stop{std::move(stop), [this, id] { cancel(id); }};
    STOKER_TRY_VOID(finished.get());
    return response;
}

}  // namespace stoker::http
