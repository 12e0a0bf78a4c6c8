#include "tests/support/sample_client.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/domain/node_directory.h"
#include "common/domain/residency_table.h"
#include "common/domain/residency_word.h"
#include "common/domain/segment_format.h"

namespace stoker::test {

namespace {

constexpr int kPatienceMs = 20000;

// Exactly `count` bytes at `offset`; empty if there are fewer.
std::vector<std::byte> read_at(const UniqueFd& file, std::uint64_t offset, std::size_t count) {
    std::vector<std::byte> bytes(count);
    const ssize_t got = ::pread(file.get(), bytes.data(), count, static_cast<off_t>(offset));
    if (got != static_cast<ssize_t>(count)) {
        bytes.clear();
    }
    return bytes;
}

}  // namespace

UniqueFd sealed_ids(const std::vector<std::uint64_t>& samples) {
    UniqueFd memfd{::memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    const auto bytes = static_cast<ssize_t>(samples.size() * sizeof(std::uint64_t));
    STOKER_CHECK(
        ::write(memfd.get(), samples.data(), static_cast<std::size_t>(bytes)) == bytes, "memfd");
    STOKER_CHECK(
        ::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0, "seal");
    return memfd;
}

SampleClient::SampleClient(const std::string& socket_path)
    : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    STOKER_CHECK(socket_path.size() < sizeof(address.sun_path), "socket path");
    std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
        0) {
        socket_.reset();
    }
}

Result<local::Welcome> SampleClient::hello(const std::string& dataset, std::uint64_t stream) {
    local::Hello hello;
    hello.pid = static_cast<std::uint32_t>(::getpid());
    hello.stream = stream;
    hello.dataset = dataset;
    hello.client = "sample-client";
    return this->hello(hello);
}

Result<local::Welcome> SampleClient::hello(const local::Hello& hello) {
    const std::uint64_t id = send(hello);
    for (;;) {
        STOKER_TRY(auto answer, answer_to(id));
        if (const auto* welcome = std::get_if<local::Welcome>(&answer.message)) {
            welcome_ = *welcome;
            return welcome_;
        }
        if (const auto* error = std::get_if<local::ErrorReply>(&answer.message)) {
            return fail(static_cast<ErrorCode>(error->code), error->message);
        }
    }
}

Status SampleClient::plan(
    std::uint64_t epoch,
    const std::vector<std::uint64_t>& samples,
    std::uint64_t start,
    const std::vector<std::uint64_t>& ahead) {
    auto all = samples;
    all.insert(all.end(), ahead.begin(), ahead.end());
    const UniqueFd memfd = sealed_ids(all);
    const std::uint64_t id = send(local::Plan{epoch, samples.size(), start}, memfd.get());
    STOKER_TRY(const auto answer, answer_to(id));
    if (const auto* error = std::get_if<local::ErrorReply>(&answer.message)) {
        return fail(static_cast<ErrorCode>(error->code), error->message);
    }
    return {};
}

Result<local::Fetched> SampleClient::fetch(const std::vector<std::uint64_t>& samples) {
    const std::uint64_t id = send(local::Fetch{samples});
    STOKER_TRY(auto answer, answer_to(id));
    if (const auto* error = std::get_if<local::ErrorReply>(&answer.message)) {
        return fail(static_cast<ErrorCode>(error->code), error->message);
    }
    return std::get<local::Fetched>(std::move(answer.message));
}

void SampleClient::consumed(std::uint64_t epoch, const std::vector<std::uint64_t>& samples) {
    send_bytes(local::encode_frame(local::Consumed{epoch, samples}, 0));
}

Result<std::optional<std::vector<std::byte>>> SampleClient::read(std::uint64_t sample) const {
    using Bytes = std::vector<std::byte>;
    const std::string folder = welcome_.directory + "/";
    const UniqueFd table{::open(
        (folder + domain::residency_file(domain::RevisionId{welcome_.revision})).c_str(),
        O_RDONLY | O_CLOEXEC)};
    const Bytes raw = read_at(
        table,
        domain::kResidencyHeaderBytes + sample * sizeof(std::uint64_t),
        sizeof(std::uint64_t));
    std::uint64_t word = 0;
    std::memcpy(&word, raw.data(), raw.size());
    const auto where = domain::unpack_residency(word);
    if (!where) {
        return std::optional<Bytes>{};
    }
    const UniqueFd segment{
        ::open((folder + domain::segment_file(where->segment)).c_str(), O_RDONLY | O_CLOEXEC)};
    if (!segment.valid()) {
        return std::optional<Bytes>{};  // unlinked since the word was read: a miss
    }
    const auto header = domain::decode_record_header(
        read_at(segment, where->record_offset, domain::kRecordHeaderBytes), where->segment);
    if (!header || header->sample != domain::SampleId{sample}) {
        return fail(ErrorCode::kCorruption, fmt::format("no record of sample {}", sample));
    }
    Bytes payload =
        read_at(segment, where->record_offset + domain::kRecordHeaderBytes, header->payload_bytes);
    if (payload.size() != header->payload_bytes || crc32c(payload) != header->payload_crc32c) {
        return fail(ErrorCode::kCorruption, fmt::format("sample {} is damaged", sample));
    }
    return std::optional{std::move(payload)};
}

Result<std::vector<std::byte>> SampleClient::get(std::uint64_t sample) {
    constexpr int kTries = 3;  // the second fetch repairs a damaged sample
    for (int i = 0; i < kTries; ++i) {
        auto bytes = read(sample);
        if (bytes && bytes->has_value()) {
            return **std::move(bytes);
        }
        STOKER_TRY(const auto fetched, fetch({sample}));
        if (fetched.statuses.at(0) == local::FetchStatus::kOriginError) {
            return fail(ErrorCode::kUnavailable, fetched.message);
        }
        if (fetched.statuses.at(0) == local::FetchStatus::kReadAtOrigin) {
            return fail(
                ErrorCode::kResourceExhausted, "the sidecar tells the client to read the origin");
        }
    }
    auto bytes = read(sample);
    if (!bytes) {
        return fail(bytes.error());
    }
    if (!bytes->has_value()) {
        return fail(ErrorCode::kInternal, "the sidecar reported an absent sample as ready");
    }
    return **std::move(bytes);
}

std::uint64_t SampleClient::send(const local::Message& message, int fd) {
    const std::uint64_t id = ++last_request_;
    auto frame = local::encode_frame(message, id);
    iovec part{frame.data(), frame.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (fd >= 0) {
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &fd, sizeof(int));
    }
    // Reading the answer detects a broken connection.
    [[maybe_unused]] const auto sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
    return id;
}

void SampleClient::send_bytes(const std::vector<std::byte>& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
        const ssize_t count =
            ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (count <= 0) {
            return;  // reading the answer detects the broken connection
        }
        sent += static_cast<std::size_t>(count);
    }
}

Result<SampleClient::Answer> SampleClient::receive() {
    STOKER_TRY(const auto head, receive_bytes(local::kFrameHeaderBytes));
    STOKER_TRY(const auto header, local::decode_frame_header(head));
    STOKER_TRY(const auto payload, receive_bytes(header.payload_bytes));
    STOKER_TRY(auto message, local::decode_payload(header.type, payload));
    return Answer{std::move(message), header.request_id};
}

Result<std::vector<std::byte>> SampleClient::receive_bytes(std::size_t count) {
    std::vector<std::byte> bytes(count);
    std::size_t got = 0;
    while (got < count) {
        pollfd ready{socket_.get(), POLLIN, 0};
        if (::poll(&ready, 1, kPatienceMs) == 0) {
            return fail(ErrorCode::kDeadlineExceeded, "no answer");
        }
        const ssize_t read = ::recv(socket_.get(), bytes.data() + got, count - got, 0);
        if (read <= 0) {
            return fail(ErrorCode::kUnavailable, "the connection has ended");
        }
        got += static_cast<std::size_t>(read);
    }
    return bytes;
}

Result<SampleClient::Answer> SampleClient::answer_to(std::uint64_t request_id) {
    for (;;) {
        STOKER_TRY(auto answer, receive());
        if (answer.request_id == request_id) {
            return answer;
        }
    }
}

}  // namespace stoker::test
