#include "operator/runtime/watch_loop.h"

#include <utility>

#include "operator/kube/pause.h"

namespace stoker::control {

WatchLoop::WatchLoop(
    ApiTransport& transport,
    WatchOptions options,
    Apply apply,
    const Clock& clock,
    std::uint64_t seed)
    : transport_(&transport),
      machine_(std::move(options), seed),
      apply_(std::move(apply)),
      clock_(&clock) {}

void WatchLoop::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        const WatchStep step = machine_.next_step(clock_->now());
        if (const auto* wait = std::get_if<WaitUntil>(&step)) {
            pause_until(*clock_, wait->at, stop);
            continue;
        }
        const auto& send = std::get<SendRequest>(step);
        if (send.stream) {
            watch(send, stop);
        } else {
            list(send, stop);
        }
    }
}

void WatchLoop::list(const SendRequest& send, const std::stop_token& stop) {
    const auto response = transport_->call(send.request, send.time_limit, stop);
    if (stop.stop_requested()) {
        return;
    }
    deliver(
        response ? machine_.on_response(*response, clock_->now())
                 : machine_.on_failure(response.error(), clock_->now()));
}

void WatchLoop::watch(const SendRequest& send, const std::stop_token& stop) {
    bool opened = false;
    ApiStreamSink sink;
    sink.on_open = [&] {
        opened = true;
        machine_.on_open(clock_->now());
    };
    sink.on_bytes = [&](std::string_view bytes) {
        deliver(machine_.on_bytes(bytes, clock_->now()));
        return machine_.streaming();
    };
    const auto end = transport_->stream(send.request, send.time_limit, sink, stop);
    if (stop.stop_requested()) {
        return;
    }
    if (opened) {
        deliver(machine_.on_end(clock_->now()));
    } else if (end) {
        deliver(machine_.on_response(*end, clock_->now()));
    } else {
        deliver(machine_.on_failure(end.error(), clock_->now()));
    }
}

void WatchLoop::deliver(WatchEvents events) {
    for (WatchEvent& event : events) {
        apply_(std::move(event));
    }
}

}  // namespace stoker::control
