#include "tests/support/fake_s3.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <fmt/core.h>

#include "sidecar/origin/s3_request.h"
#include "sidecar/origin/s3_xml.h"
#include "tests/support/fake_s3_text.h"

namespace stoker::test {

namespace {

using sidecar::percent_decode;
using sidecar::percent_encode;

std::string header_of(const ScriptRequest& request, const std::string& name) {
    const auto found = request.headers.find(name);
    return found == request.headers.end() ? "" : found->second;
}

// "bucket/key", still encoded, from a path, or from a path and a host "bucket.localhost:1234".
std::string bucket_and_key(const ScriptRequest& request) {
    const std::string path = request.target.substr(1, request.target.find('?') - 1);
    const std::string host = header_of(request, "host");
    const auto dot = host.find(".localhost");
    return dot == std::string::npos ? path : host.substr(0, dot) + "/" + path;
}

}  // namespace

FakeS3::FakeS3(FakeS3Options options)
    : options_(std::move(options)) {
    if (!options_.directory.empty()) {
        loaded_ = load(options_.directory);
    }
    server_ = std::make_unique<HttpScriptServer>(
        answering(
            [this](const ScriptRequest& request, ScriptConnection& to) { serve(request, to); }),
        options_.address,
        options_.port);
}

FakeS3::~FakeS3() {
    server_.reset();
}

std::string FakeS3::endpoint() const {
    return fmt::format("http://127.0.0.1:{}", port());
}

void FakeS3::make_bucket(const std::string& bucket) {
    state_.lock()->buckets.try_emplace(bucket);
}

std::string FakeS3::put(const std::string& bucket, const std::string& key, std::string bytes) {
    auto object = std::make_shared<Object>();
    object->etag = md5_hex(options_.encryption == "aws:kms" ? "encrypted " + bytes : bytes);
    object->crc32c_base64 = crc32c_base64(bytes);
    object->bytes = std::move(bytes);
    std::string etag = object->etag;
    state_.lock()->buckets[bucket][key] = std::move(object);
    return etag;
}

void FakeS3::remove(const std::string& bucket, const std::string& key) {
    state_.lock()->buckets[bucket].erase(key);
}

Status FakeS3::load(const std::string& directory) {
    namespace fs = std::filesystem;
    std::error_code failed;
    for (fs::directory_iterator bucket{directory, failed}, end; !failed && bucket != end;
         bucket.increment(failed)) {
        make_bucket(bucket->path().filename());
        for (const auto& file : fs::recursive_directory_iterator{bucket->path()}) {
            if (file.is_regular_file()) {
                std::ostringstream text;
                text << std::ifstream{file.path(), std::ios::binary}.rdbuf();
                put(bucket->path().filename(),
                    file.path().lexically_relative(bucket->path()).generic_string(),
                    std::move(text).str());
            }
        }
    }
    return failed ? fail(ErrorCode::kNotFound, fmt::format("{}: {}", directory, failed.message()))
                  : Status{};
}

void FakeS3::add_fault(FakeS3Fault fault) {
    state_.lock()->faults.push_back(std::move(fault));
}

void FakeS3::clear_faults() {
    state_.lock()->faults.clear();
}

std::vector<FakeS3Request> FakeS3::requests() {
    return state_.lock()->requests;
}

std::size_t FakeS3::request_count(const std::string& operation, const std::string& key) {
    const auto all = requests();
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const FakeS3Request& request) {
            return request.operation == operation && (key.empty() || request.key == key);
        }));
}

void FakeS3::clear_requests() {
    state_.lock()->requests.clear();
}

void FakeS3::serve(const ScriptRequest& request, ScriptConnection& to) {
    if (request.target.starts_with("/__")) {
        serve_control(request, to);
        return;
    }
    {
        auto state = state_.lock();
        state->most_at_once = std::max(state->most_at_once, ++state->at_once);
    }
    serve_s3(request, to);
    --state_.lock()->at_once;
}

void FakeS3::serve_control(const ScriptRequest& request, ScriptConnection& to) {
    const bool faults = request.target == "/__faults";
    if (request.method == "DELETE") {
        faults ? clear_faults() : clear_requests();
        to.reply(200, "");
        return;
    }
    if (faults) {
        std::istringstream lines{request.body};
        for (std::string line; std::getline(lines, line);) {
            auto fault = parse_fault(line);
            if (!fault) {
                to.reply(400, fault.error().message + "\n");
                return;
            }
            add_fault(*std::move(fault));
        }
        to.reply(200, "");
        return;
    }
    std::map<std::string, std::uint64_t> counts = {
        {"list", 0}, {"get", 0}, {"put", 0}, {"get_bytes", 0}, {"errors", 0}};
    for (const FakeS3Request& one : requests()) {
        ++counts[one.operation];
        counts["get_bytes"] += one.operation == "get" && one.status < 300 ? one.body_bytes : 0;
        counts["errors"] += one.status >= 400 ? 1 : 0;
    }
    std::string json = fmt::format("{{\"connections\":{}", connection_count());
    for (const auto& [name, count] : counts) {
        json += fmt::format(",\"{}\":{}", name, count);
    }
    to.reply(200, json + "}\n", "Content-Type: application/json\r\n");
}

FakeS3Fault FakeS3::take_fault(const std::string& operation, const std::string& key) {
    auto state = state_.lock();
    for (FakeS3Fault& fault : state->faults) {
        if (!fault.matches(operation, key) || fault.times == 0) {
            continue;
        }
        if (fault.skip > 0) {
            --fault.skip;
            continue;
        }
        fault.times -= fault.times > 0 ? 1 : 0;
        return fault;
    }
    return {};
}

void FakeS3::serve_s3(const ScriptRequest& request, ScriptConnection& to) {
    const std::string path = bucket_and_key(request);
    const auto slash = std::min(path.find('/'), path.size());
    const QueryMap query = parse_query(request.target);
    FakeS3Request asked;
    asked.bucket = path.substr(0, slash);
    asked.key = percent_decode(path.substr(std::min(slash + 1, path.size())), false).value_or("?");
    asked.operation = request.method == "PUT"       ? "put"
                      : query.contains("list-type") ? "list"
                                                    : "get";
    asked.range = header_of(request, "range");
    if (asked.operation == "list") {
        asked.key = query.contains("prefix") ? query.at("prefix") : "";
    }
    const FakeS3Fault fault = take_fault(asked.operation, asked.key);
    std::this_thread::sleep_for(fault.delay);

    Answer answer;
    if (auto refusal = refuse_signature(request)) {
        answer = *std::move(refusal);
    } else if (fault.status != 0) {
        answer = error(fault.status, fault.code.empty() ? default_code(fault.status) : fault.code);
        if (!fault.retry_after.empty()) {
            answer.headers += fmt::format("Retry-After: {}\r\n", fault.retry_after);
        }
    } else if (asked.operation == "list") {
        answer = list(asked.bucket, query);
    } else if (asked.operation == "put") {
        answer = store(asked, request);
    } else {
        answer = get(asked, request, fault);
    }
    asked.status = answer.status;
    // Logged before the last byte is sent, so that a client that has its answer also finds it in the
    // log.
    asked.body_bytes = (answer.owner ? answer.body : answer.own_body).size();
    if (fault.cut_after) {
        asked.body_bytes = std::min(asked.body_bytes, *fault.cut_after);
    }
    state_.lock()->requests.push_back(asked);
    send(answer, fault, to);
}

FakeS3::Answer FakeS3::error(int status, std::string code) {
    Answer answer;
    answer.status = status;
    answer.headers = "Content-Type: application/xml\r\n";
    answer.own_body = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>{}</Message>"
        "<RequestId>1</RequestId></Error>",
        code,
        words_for(code));
    return answer;
}

std::optional<FakeS3::Answer> FakeS3::refuse_signature(const ScriptRequest& request) const {
    if (!options_.credentials) {
        return std::nullopt;
    }
    const std::string authorization = header_of(request, "authorization");
    if (authorization.find("Credential=" + options_.credentials->access_key_id + "/") ==
        std::string::npos) {
        return error(403, authorization.empty() ? "AccessDenied" : "InvalidAccessKeyId");
    }
    sidecar::UnsignedRequest signed_request;
    signed_request.payload_hash = header_of(request, "x-amz-content-sha256");
    signed_request.method = request.method;
    signed_request.path = request.target.substr(0, request.target.find('?'));
    for (const auto& [name, value] : parse_query(request.target)) {
        signed_request.query.emplace_back(name, value);
    }
    const auto names_at = authorization.find("SignedHeaders=") + 14;
    std::istringstream names{
        authorization.substr(names_at, authorization.find(',', names_at) - names_at)};
    for (std::string name; std::getline(names, name, ';');) {
        // sign() adds these itself.
        if (name != "x-amz-date" && name != "x-amz-content-sha256" &&
            name != "x-amz-security-token") {
            signed_request.headers.push_back({name, header_of(request, name)});
        }
    }
    std::tm date{};
    ::strptime(header_of(request, "x-amz-date").c_str(), "%Y%m%dT%H%M%SZ", &date);
    const WallTime at{std::chrono::seconds{::timegm(&date)}};
    const auto expected = sidecar::sign(
        std::move(signed_request), {options_.region, "s3"}, *options_.credentials, at);
    // Signers format the header differently; the signature is the 64 hex digits at its end.
    const auto signature = [](const std::string& text) {
        return text.substr(text.rfind("Signature=") + 10);
    };
    const bool good =
        signature(*http::find_header(expected, "Authorization")) == signature(authorization);
    return good ? std::nullopt : std::optional{error(403, "SignatureDoesNotMatch")};
}

FakeS3::Answer FakeS3::list(const std::string& bucket, const QueryMap& query) {
    const auto value = [&](const char* name) {
        const auto found = query.find(name);
        return found == query.end() ? std::string{} : found->second;
    };
    const bool url = value("encoding-type") == "url";
    const auto text = [&](const std::string& key) {
        return url ? form_encode(key) : key;  // raw keys need no XML escapes in our tests
    };
    auto state = state_.lock();
    const auto found = state->buckets.find(bucket);
    if (found == state->buckets.end()) {
        return error(404, "NoSuchBucket");
    }
    const std::string prefix = value("prefix");
    const std::string token = value("continuation-token");
    const auto& objects = found->second;
    auto object = token.empty() ? objects.lower_bound(prefix)
                                : objects.upper_bound(percent_decode(token, false).value_or(""));
    std::string contents;
    std::string last;
    std::size_t count = 0;
    for (; object != objects.end() && object->first.starts_with(prefix); ++object) {
        if (count++ == options_.page_objects) {
            break;
        }
        last = object->first;
        contents += fmt::format(
            "<Contents><Key>{}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            "<ETag>&quot;{}&quot;</ETag><Size>{}</Size></Contents>",
            text(last),
            object->second->etag,
            object->second->bytes.size());
    }
    const bool truncated = count > options_.page_objects;
    Answer answer;
    answer.headers = "Content-Type: application/xml\r\n";
    answer.own_body = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>{}</Name>"
        "<Prefix>{}</Prefix>{}<IsTruncated>{}</IsTruncated>{}{}</ListBucketResult>",
        bucket,
        text(prefix),
        url ? "<EncodingType>url</EncodingType>" : "",
        truncated,
        truncated
            ? fmt::format(
                  "<NextContinuationToken>{}</NextContinuationToken>", percent_encode(last, false))
            : "",
        contents);
    return answer;
}

FakeS3::Answer FakeS3::store(const FakeS3Request& asked, const ScriptRequest& request) {
    if (!state_.lock()->buckets.contains(asked.bucket)) {
        return error(404, "NoSuchBucket");
    }
    Answer answer;
    answer.headers = fmt::format("ETag: \"{}\"\r\n", put(asked.bucket, asked.key, request.body));
    return answer;
}

FakeS3::Answer FakeS3::get(
    const FakeS3Request& asked, const ScriptRequest& request, const FakeS3Fault& fault) {
    ObjectPtr object;
    {
        auto state = state_.lock();
        const auto bucket = state->buckets.find(asked.bucket);
        if (bucket == state->buckets.end()) {
            return error(404, "NoSuchBucket");
        }
        const auto found = bucket->second.find(asked.key);
        if (found == bucket->second.end()) {
            return error(404, "NoSuchKey");
        }
        object = found->second;
    }
    if (fault.corrupt || fault.length_change != 0) {
        auto damaged = std::make_shared<Object>(*object);
        const auto size = static_cast<std::int64_t>(damaged->bytes.size()) + fault.length_change;
        damaged->bytes.resize(static_cast<std::size_t>(std::max<std::int64_t>(size, 0)), '!');
        for (char& c : damaged->bytes) {
            c = static_cast<char>(fault.corrupt ? ~c : c);
        }
        object = std::move(damaged);
    }
    const std::string if_match = header_of(request, "if-match");
    if (!fault.ignore_if_match && !if_match.empty() && if_match != "\"" + object->etag + "\"") {
        return error(412, "PreconditionFailed");
    }
    Answer answer;
    answer.owner = object;
    answer.body = object->bytes;
    answer.headers = fmt::format(
        "ETag: \"{}\"\r\nAccept-Ranges: bytes\r\n", fault.etag.empty() ? object->etag : fault.etag);
    if (!options_.encryption.empty()) {
        answer.headers += fmt::format("x-amz-server-side-encryption: {}\r\n", options_.encryption);
    }
    if (!asked.range.empty() && !fault.ignore_range) {
        const auto range = parse_range(asked.range, object->bytes.size());
        if (!range) {
            return error(416, "InvalidRange");
        }
        answer.status = 206;
        answer.body = answer.body.substr(range->first, range->second);
        answer.headers += fmt::format(
            "Content-Range: bytes {}-{}/{}\r\n",
            range->first,
            range->first + range->second - 1,
            object->bytes.size());
    } else if (options_.send_crc32c && header_of(request, "x-amz-checksum-mode") == "ENABLED") {
        answer.headers += fmt::format("x-amz-checksum-crc32c: {}\r\n", object->crc32c_base64);
    }
    return answer;
}

std::uint64_t FakeS3::send(const Answer& answer, const FakeS3Fault& fault, ScriptConnection& to) {
    std::string_view body = answer.owner ? answer.body : std::string_view{answer.own_body};
    const std::string head = fmt::format(
        "HTTP/1.1 {} X\r\nContent-Length: {}\r\n{}\r\n",
        answer.status,
        body.size(),
        answer.headers);
    if (fault.reset && !fault.cut_after) {
        to.reset();
        to.hang_up();
        return 0;
    }
    if (fault.cut_after) {
        body = body.substr(0, *fault.cut_after);
    }
    bool open = to.send(head);
    const std::size_t step = fault.bytes_per_second == 0
                                 ? std::max<std::size_t>(body.size(), 1)
                                 : std::max<std::size_t>(fault.bytes_per_second / 50, 1);
    std::uint64_t sent = 0;
    while (open && sent < body.size()) {
        const std::string_view piece = body.substr(sent, step);
        open = to.send(piece);
        sent += piece.size();
        if (fault.bytes_per_second != 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        }
    }
    if (fault.cut_after) {
        if (fault.reset) {
            to.reset();
        }
        to.hang_up();
    }
    return sent;
}

}  // namespace stoker::test
