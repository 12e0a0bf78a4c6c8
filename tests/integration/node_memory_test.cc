// Memory of the real stoker-node, in a mount namespace of its own, while pods come and go.
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/http/http_server.h"
#include "proto/csi/v1/csi.grpc.pb.h"
#include "tests/support/certificates.h"
#include "tests/support/poll.h"
#include "tests/support/temp_folder.h"

namespace stoker::node {
namespace {

namespace fs = std::filesystem;
namespace csi = ::csi::v1;

constexpr const char* kPool =
    R"({"apiVersion":"stoker.dev/v1alpha1","kind":"CachePool","metadata":{"name":"nvme"},)"
    R"("spec":{"capacityPerNode":"1Gi","volume":{"hostPath":{"path":"/mnt/nvme"}}}})";

// Serves the one object that the program needs.
http::ServerResponse answer(const http::ServerRequest& request) {
    return request.path().ends_with("/cachepools/nvme")
               ? http::ServerResponse{200, "application/json", kPool}
               : http::ServerResponse{404, "application/json", "{}"};
}

// The program's folders are below folder(); it finds its credentials where the kubelet mounts them.
// The destructor kills it; its mounts end with its namespace.
class RunningNode {
public:
    RunningNode() {
        fs::create_directories(folder() + "/host/mnt");
        fs::create_directories(folder() + "/kubelet/plugins_registry");
        fs::create_directories(folder() + "/account");
        std::ofstream{folder() + "/account/token"} << "token";
        std::ofstream{folder() + "/account/ca.crt"} << certificates_.ca;
        http::ServerOptions options;
        options.address = "127.0.0.1";
        options.cert_pem = certificates_.certificate;
        options.key_pem = certificates_.key;
        api_ = http::HttpServer::start(std::move(options), answer).value();
        start();
    }

    ~RunningNode() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }

    RunningNode(const RunningNode&) = delete;
    RunningNode& operator=(const RunningNode&) = delete;

    [[nodiscard]] const std::string& folder() const { return folder_.path(); }

    [[nodiscard]] std::string csi_socket() const {
        return folder() + "/kubelet/plugins/csi.stoker.dev/csi.sock";
    }

    [[nodiscard]] Bytes anonymous_memory() const {
        std::ifstream file{fmt::format("/proc/{}/smaps_rollup", pid_)};
        for (std::string line; std::getline(file, line);) {
            if (line.starts_with("Anonymous:")) {
                return kib(std::stoull(line.substr(line.find(':') + 1)));
            }
        }
        return {};
    }

private:
    void start() {
        const std::string script = fmt::format(
            "mount -t tmpfs tmpfs /run && mkdir -p /run/secrets/kubernetes.io && "
            "ln -s {0}/account /run/secrets/kubernetes.io/serviceaccount && "
            "exec {1} --node=node-1 --namespace=stoker-system --host-root={0}/host "
            "--kubelet-directory={0}/kubelet --http-listen= --log-level=warning",
            folder(),
            STOKER_NODE_BINARY);
        std::vector<std::string> words{"unshare", "--mount", "sh", "-c", script};
        std::vector<std::string> settings{
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "KUBERNETES_SERVICE_HOST=127.0.0.1",
            fmt::format("KUBERNETES_SERVICE_PORT={}", api_->port())};
        const auto pointers = [](std::vector<std::string>& texts) {
            std::vector<char*> result;
            for (std::string& text : texts) {
                result.push_back(text.data());
            }
            result.push_back(nullptr);
            return result;
        };
        ASSERT_EQ(
            ::posix_spawnp(
                &pid_,
                "unshare",
                nullptr,
                nullptr,
                pointers(words).data(),
                pointers(settings).data()),
            0);
    }

    test::TempFolder folder_;
    const testing::TestCertificates certificates_ = testing::make_certificates();
    std::unique_ptr<http::HttpServer> api_;
    pid_t pid_ = -1;
};

// Calls the program as a kubelet: over one connection, for several pods at a time.
class Kubelet {
public:
    explicit Kubelet(const RunningNode& node)
        : folder_(node.folder() + "/kubelet/pods"),
          stub_(csi::Node::NewStub(grpc::CreateChannel(
              "unix://" + node.csi_socket(), grpc::InsecureChannelCredentials()))) {}

    // Starts and ends `count` pods with access Files, `at_a_time`, each with a Dataset of its own.
    void run_pods(std::size_t count, std::size_t at_a_time) {
        std::atomic<std::size_t> begun{0};
        const auto work = [&] {
            while (begun++ < count) {
                run_pod(pods_++);
            }
        };
        std::vector<std::jthread> workers;
        for (std::size_t i = 0; i < at_a_time; ++i) {
            workers.emplace_back(work);
        }
    }

    [[nodiscard]] std::size_t failures() const { return failures_; }

private:
    static constexpr std::array kViews{"owner", "data", "files-server", "files"};

    void run_pod(std::size_t pod) {
        for (const char* view : kViews) {
            publish(pod, view);
        }
        for (const char* view : kViews) {
            unpublish(pod, view);
        }
        fs::remove_all(fmt::format("{}/{}", folder_, pod));
    }

    [[nodiscard]] std::string volume(std::size_t pod, const std::string& view) const {
        return fmt::format("{}/{}/volumes/kubernetes.io~csi/{}", folder_, pod, view);
    }

    void publish(std::size_t pod, const std::string& view) {
        fs::create_directories(volume(pod, view));
        csi::NodePublishVolumeRequest request;
        request.set_volume_id(fmt::format("csi-{}-{}", pod, view));
        request.set_target_path(volume(pod, view) + "/mount");
        request.mutable_volume_capability()->mutable_mount();
        request.set_readonly(view != "owner");
        auto& context = *request.mutable_volume_context();
        context["csi.storage.k8s.io/ephemeral"] = "true";
        context["csi.storage.k8s.io/pod.namespace"] = "team";
        context["csi.storage.k8s.io/pod.name"] = fmt::format("resnet-{}", pod);
        context["csi.storage.k8s.io/pod.uid"] = fmt::format("pod-{}", pod);
        context["pool"] = "nvme";
        context["namespace"] = "team";
        context["dataset"] = "imagenet";
        context["uid"] = fmt::format("00000000-0000-0000-0000-{:012x}", pod);
        context["view"] = view;
        grpc::ClientContext call;
        csi::NodePublishVolumeResponse response;
        note(stub_->NodePublishVolume(&call, request, &response));
    }

    void unpublish(std::size_t pod, const std::string& view) {
        csi::NodeUnpublishVolumeRequest request;
        request.set_volume_id(fmt::format("csi-{}-{}", pod, view));
        request.set_target_path(volume(pod, view) + "/mount");
        grpc::ClientContext call;
        csi::NodeUnpublishVolumeResponse response;
        note(stub_->NodeUnpublishVolume(&call, request, &response));
    }

    void note(const grpc::Status& status) {
        if (!status.ok() && failures_++ == 0) {
            std::printf("a call failed: %s\n", status.error_message().c_str());
        }
    }

    std::string folder_;
    std::unique_ptr<csi::Node::Stub> stub_;
    std::atomic<std::size_t> pods_{0};
    std::atomic<std::size_t> failures_{0};
};

// Starts and ends pods one after another at first, so that the growth includes what threads of many
// calls at a time keep.
TEST(NodeMemory, DoesNotGrowWithThePodsThatHaveEnded) {
    if (::geteuid() != 0) {
        std::printf("not run: sidecars' folders and mounts need root\n");
        return;
    }
    const RunningNode node;
    ASSERT_TRUE(test::eventually([&] { return fs::exists(node.csi_socket()); }));
    Kubelet kubelet{node};
    kubelet.run_pods(4, 1);
    const Bytes before = node.anonymous_memory();
    kubelet.run_pods(300, 16);
    const Bytes after = node.anonymous_memory();
    std::printf("anonymous: %s, then %s\n", to_string(before).c_str(), to_string(after).c_str());
    EXPECT_EQ(kubelet.failures(), 0U);
    EXPECT_GT(before, Bytes::zero());
    EXPECT_LT(after, before + mib(2));
}

}  // namespace
}  // namespace stoker::node
