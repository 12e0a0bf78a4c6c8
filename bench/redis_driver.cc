#include <vector>

#include <fmt/core.h>
#include <hiredis/hiredis.h>

#include "bench/driver.h"
#include "bench/workload.h"

namespace stoker::bench {

namespace {

struct FreeContext {
    void operator()(redisContext* context) const { redisFree(context); }
};

struct FreeReply {
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

using Reply = std::unique_ptr<redisReply, FreeReply>;

// One MGET per batch over a unix socket; touches the bytes in hiredis's buffers, without a copy.
class RedisMget final : public Driver {
public:
    RedisMget(const std::string& socket_path, const Workload& workload)
        : context_(redisConnectUnix(socket_path.c_str())) {
        if (context_ == nullptr || context_->err != 0) {
            die(fmt::format("cannot connect to Redis at {}", socket_path));
        }
        store_samples(workload);
    }

    std::uint64_t read_batch(std::span<const std::uint64_t> ids) override {
        std::vector<std::string> words{"MGET"};
        for (const std::uint64_t id : ids) {
            words.push_back(std::to_string(id));
        }
        const Reply reply = command(words);
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != ids.size()) {
            die("Redis did not answer with an array");
        }
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < reply->elements; ++i) {
            const redisReply& value = *reply->element[i];
            sum += touch(std::as_bytes(std::span{value.str, value.len}));
        }
        return sum;
    }

private:
    void store_samples(const Workload& workload) {
        const auto sizes = sample_sizes(workload);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            std::string value(sizes[i], '\0');
            fill_sample(i, std::as_writable_bytes(std::span{value}));
            command({"SET", std::to_string(i), std::move(value)});
        }
    }

    Reply command(const std::vector<std::string>& words) {
        std::vector<const char*> texts;
        std::vector<std::size_t> lengths;
        for (const std::string& word : words) {
            texts.push_back(word.data());
            lengths.push_back(word.size());
        }
        Reply reply{static_cast<redisReply*>(redisCommandArgv(
            context_.get(), static_cast<int>(words.size()), texts.data(), lengths.data()))};
        if (reply == nullptr || reply->type == REDIS_REPLY_ERROR) {
            die(fmt::format("Redis command failed: {}", words.front()));
        }
        return reply;
    }

    std::unique_ptr<redisContext, FreeContext> context_;
};

}  // namespace

std::unique_ptr<Driver> redis_mget(const std::string& socket_path, const Workload& workload) {
    return std::make_unique<RedisMget>(socket_path, workload);
}

}  // namespace stoker::bench
