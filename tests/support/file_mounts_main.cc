// stoker-test-file-mounts FOLDER: does the node program's work for one pod and one dataset with
// access Files, without Kubernetes: files at FOLDER/files, the socket's folder at FOLDER/server.
// Needs root. Prints "mounted" when it is ready; serves until SIGTERM, and then leaves the mounts.
#include <cstdio>
#include <string>

#include "common/base/clock.h"
#include "common/program/program.h"
#include "node/mount/mounts.h"
#include "node/service/file_mounts.h"
#include "operator/kube/pause.h"

namespace stoker {
namespace {

Status serve(const std::string& folder, const std::stop_token& stop) {
    const SystemClock clock;
    const auto mounts = node::make_mounts(folder + "/kubelet", node::kDriverName);
    node::FileMounts files{folder + "/sessions", {0, 0}, *mounts};
    files.restore();
    node::ViewRequest request;
    request.pod.uid = "pod";
    request.directory.uid = "dataset";
    request.view = node::View::kFiles;
    STOKER_TRY_VOID(files.publish(request, folder + "/files"));
    request.view = node::View::kFilesServer;
    STOKER_TRY_VOID(files.publish(request, folder + "/server"));
    std::puts("mounted");
    std::fflush(stdout);
    control::pause_until(clock, TimePoint::max(), stop);
    return {};
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: stoker-test-file-mounts FOLDER\n", stderr);
        return 2;
    }
    const std::string folder = argv[1];
    return stoker::run_until_stopped([&](const std::stop_token& stop) {
        const stoker::Status status = stoker::serve(folder, stop);
        if (!status) {
            std::fprintf(stderr, "%s\n", status.error().message.c_str());
        }
        return status ? 0 : 1;
    });
}
