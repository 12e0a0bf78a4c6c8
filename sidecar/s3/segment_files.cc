#include "sidecar/s3/segment_files.h"

#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "common/domain/node_directory.h"

namespace stoker::s3 {

SegmentFiles::File SegmentFiles::open(
    const std::shared_ptr<attached::DatasetFiles>& dataset, domain::SegmentSeq seq) {
    const Key key{dataset.get(), seq.value()};
    if (const auto found = places_.find(key); found != places_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        return entries_.front().file;
    }
    const std::string path = dataset->directory() + "/" + domain::segment_file(seq);
    UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!fd.valid()) {
        return nullptr;
    }
    if (entries_.size() >= files_max_) {
        const Entry& oldest = entries_.back();
        places_.erase({oldest.dataset.get(), oldest.seq.value()});
        entries_.pop_back();
    }
    entries_.push_front({dataset, seq, std::make_shared<const UniqueFd>(std::move(fd))});
    places_[key] = entries_.begin();
    return entries_.front().file;
}

void SegmentFiles::retire_unlinked() {
    for (auto at = entries_.begin(); at != entries_.end();) {
        struct stat status {};

        const bool is_gone = ::fstat(at->file->get(), &status) != 0 || status.st_nlink == 0;
        if (is_gone) {
            places_.erase({at->dataset.get(), at->seq.value()});
        }
        at = is_gone ? entries_.erase(at) : std::next(at);
    }
}

}  // namespace stoker::s3
