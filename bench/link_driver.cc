// Measures the link's peak rate for one reader: keeps 64 GETs in flight and drops the bytes.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <curl/curl.h>
#include <fmt/core.h>

#include "bench/driver.h"
#include "bench/workload.h"

namespace stoker::bench {

namespace {

constexpr std::size_t kInFlight = 64;
constexpr const char* kEmptyBody =
    "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr double kFromSecond = 2.0;  // start of the third second

std::size_t count_bytes(char* /*data*/, std::size_t size, std::size_t count, void* total) {
    *static_cast<std::uint64_t*>(total) += size * count;
    return size * count;
}

std::string credentials() {
    const char* key = std::getenv("AWS_ACCESS_KEY_ID");         // NOLINT(concurrency-mt-unsafe)
    const char* secret = std::getenv("AWS_SECRET_ACCESS_KEY");  // NOLINT(concurrency-mt-unsafe)
    if (key == nullptr || secret == nullptr) {
        die("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set");
    }
    return fmt::format("{}:{}", key, secret);
}

class LinkReader {
public:
    LinkReader(std::string base_url, std::size_t copies)
        : base_url_(std::move(base_url)),
          credentials_(credentials()),
          copies_(copies) {}

    LateRate read_all(std::uint64_t pass) {
        order_ = pass_order(pass, copies_ * kSampleCount);
        next_ = 0;
        received_ = 0;
        const double begin = seconds();
        double late_begin = 0;
        std::uint64_t late_received = 0;
        for (std::size_t i = 0; i < kInFlight; ++i) {
            start(make_request());
        }
        for (int running = 1; running > 0;) {
            curl_multi_perform(multi_.get(), &running);
            start_more();
            curl_multi_poll(multi_.get(), nullptr, 0, 100, nullptr);
            if (late_begin == 0 && seconds() - begin >= kFromSecond) {
                late_begin = seconds();
                late_received = received_;
            }
            running += next_ < order_.size() ? 1 : 0;
        }
        const double end = seconds();
        if (late_begin == 0) {
            die("the pass ended before the third second");
        }
        return {end - begin, static_cast<double>(received_ - late_received) / (end - late_begin)};
    }

private:
    // libcurl may define all its handle types as void*, so each type has its own deleter.
    struct FreeEasy {
        void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
    };

    struct FreeMulti {
        void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
    };

    struct FreeList {
        void operator()(curl_slist* list) const { curl_slist_free_all(list); }
    };

    CURL* make_request() {
        CURL* easy = requests_.emplace_back(curl_easy_init()).get();
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &count_bytes);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &received_);
        curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, "aws:amz:us-east-1:s3");
        curl_easy_setopt(easy, CURLOPT_USERPWD, credentials_.c_str());
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
        curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
        return easy;
    }

    void start(CURL* easy) {
        if (next_ < order_.size()) {
            const std::string url = base_url_ + origin_key(order_[next_++]);
            curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
            curl_multi_add_handle(multi_.get(), easy);
        }
    }

    void start_more() {
        int left = 0;
        while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
            if (message->data.result != CURLE_OK) {
                die(fmt::format("the link: {}", curl_easy_strerror(message->data.result)));
            }
            CURL* easy = message->easy_handle;
            curl_multi_remove_handle(multi_.get(), easy);
            start(easy);
        }
    }

    std::string base_url_;
    std::string credentials_;
    std::size_t copies_;
    std::unique_ptr<curl_slist, FreeList> headers_{curl_slist_append(nullptr, kEmptyBody)};
    std::unique_ptr<CURLM, FreeMulti> multi_{curl_multi_init()};
    std::vector<std::unique_ptr<CURL, FreeEasy>> requests_;
    std::vector<std::uint64_t> order_;
    std::size_t next_ = 0;
    std::uint64_t received_ = 0;
};

}  // namespace

LateRate read_link(const std::string& base_url, std::size_t copies, std::uint64_t pass) {
    return LinkReader{base_url, copies}.read_all(pass);
}

}  // namespace stoker::bench
