#include "common/runtime/named_thread.h"

#include <csignal>
#include <utility>

#include <pthread.h>

namespace stoker {

namespace {

constexpr std::size_t kNameMax = 15;

}  // namespace

std::jthread start_thread(std::string name, std::function<void(std::stop_token)> body) {
    name.resize(name.size() > kNameMax ? kNameMax : name.size());
    return std::jthread{[name = std::move(name), body = std::move(body)](std::stop_token stop) {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        pthread_setname_np(pthread_self(), name.c_str());
        body(std::move(stop));
    }};
}

}  // namespace stoker
