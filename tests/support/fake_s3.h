#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/guarded.h"
#include "sidecar/origin/credentials.h"
#include "tests/support/fake_s3_fault.h"
#include "tests/support/http_script_server.h"

namespace stoker::test {

struct FakeS3Options {
    std::string address = "127.0.0.1";  // IPv4
    std::uint16_t port = 0;
    std::size_t page_objects = 1000;  // maximum per page of a listing
    // If set, requests must be signed with these keys; if unset, they need no signature.
    std::optional<sidecar::Credentials> credentials{};
    std::string region = "us-east-1";
    // Set: serves every file <directory>/<bucket>/<key>; see loaded().
    std::string directory{};
    bool send_crc32c = false;  // x-amz-checksum-crc32c with whole objects, if requested
    // x-amz-server-side-encryption of every object; with "aws:kms" their ETags are not MD5s.
    std::string encryption{};
};

struct FakeS3Request {
    std::string operation;  // "get", "list" or "put"
    std::string bucket;
    std::string key;  // for lists: the prefix
    std::string range;
    int status = 0;
    std::uint64_t body_bytes = 0;  // bytes of the answer's body that were sent
};

// An S3 server in this process, on loopback: buckets in memory, ListObjectsV2 with pages, GET with
// ranges and If-Match, PUT, fault injection, and a log of requests. Other processes control it with
// GET /__stats (counts as JSON), DELETE /__stats, POST /__faults (one fault per line, see
// parse_fault), DELETE /__faults. Thread-safe.
class FakeS3 {
public:
    explicit FakeS3(FakeS3Options options = {});
    ~FakeS3();
    FakeS3(const FakeS3&) = delete;
    FakeS3& operator=(const FakeS3&) = delete;

    [[nodiscard]] bool listening() const { return server_->listening(); }

    [[nodiscard]] std::uint16_t port() const { return server_->port(); }

    // "http://127.0.0.1:1234"
    [[nodiscard]] std::string endpoint() const;

    void make_bucket(const std::string& bucket);

    // Returns the object's ETag: the MD5 of `bytes` unless options.encryption says otherwise.
    std::string put(const std::string& bucket, const std::string& key, std::string bytes);
    void remove(const std::string& bucket, const std::string& key);

    // Whether options.directory could be read.
    [[nodiscard]] const Status& loaded() const { return loaded_; }

    void add_fault(FakeS3Fault fault);
    void clear_faults();

    [[nodiscard]] std::vector<FakeS3Request> requests();
    [[nodiscard]] std::size_t request_count(
        const std::string& operation, const std::string& key = "");
    void clear_requests();

    [[nodiscard]] int connection_count() const { return server_->connection_count(); }

    // Peak number of requests in progress at the same time.
    [[nodiscard]] int most_at_once() { return state_.lock()->most_at_once; }

private:
    struct Object {
        std::string bytes;
        std::string etag;
        std::string crc32c_base64;
    };

    using ObjectPtr = std::shared_ptr<const Object>;

    struct State {
        std::map<std::string, std::map<std::string, ObjectPtr>> buckets;
        std::list<FakeS3Fault> faults;
        std::vector<FakeS3Request> requests;
        int at_once = 0;
        int most_at_once = 0;
    };

    struct Answer {
        int status = 200;
        std::string headers{};
        std::string_view body{};
        ObjectPtr owner{};       // keeps the body alive
        std::string own_body{};  // used without an owner
    };

    Status load(const std::string& directory);
    void serve(const ScriptRequest& request, ScriptConnection& to);
    void serve_control(const ScriptRequest& request, ScriptConnection& to);
    void serve_s3(const ScriptRequest& request, ScriptConnection& to);
    FakeS3Fault take_fault(const std::string& operation, const std::string& key);
    Answer list(const std::string& bucket, const std::map<std::string, std::string>& query);
    Answer store(const FakeS3Request& asked, const ScriptRequest& request);
    Answer get(const FakeS3Request& asked, const ScriptRequest& request, const FakeS3Fault& fault);
    [[nodiscard]] std::optional<Answer> refuse_signature(const ScriptRequest& request) const;
    static Answer error(int status, std::string code);
    static std::uint64_t send(const Answer& answer, const FakeS3Fault& fault, ScriptConnection& to);

    const FakeS3Options options_;
    Guarded<State> state_;
    Status loaded_;
    std::unique_ptr<HttpScriptServer> server_;  // last: its threads use the other members
};

}  // namespace stoker::test
