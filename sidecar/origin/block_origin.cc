#include "sidecar/origin/block_origin.h"

#include <string>
#include <utility>

#include <fmt/core.h>

#include "common/domain/block_format.h"

namespace stoker::sidecar {

namespace {

// Translates the fetch of a block into the fetch of a slice of its object; leaves the fetch of a
// whole object unchanged.
Result<OriginFetch> in_object(OriginFetch block) {
    const auto place = domain::parse_block_place(block.etag);
    if (!place) {
        return block;
    }
    if (block.whole_bytes() != place->size_bytes() ||
        block.begin() + block.size_bytes > block.whole_bytes()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("'{}' has an ETag that names another block", block.key));
    }
    OriginFetch wanted{
        std::string{domain::object_key_of(block.key)},
        std::string{place->object_etag},
        block.size_bytes,
        block.attempts};
    wanted.slice = OriginSlice{place->offset() + block.begin(), place->object_bytes};
    return wanted;
}

class BlockOrigin final : public Origin {
public:
    BlockOrigin(std::unique_ptr<Origin> objects, Bytes block_bytes)
        : block_bytes_(block_bytes),
          objects_(std::move(objects)) {}

    [[nodiscard]] std::string describe() const override {
        return objects_->describe() + " (blocks)";
    }

    [[nodiscard]] bool has_key() const override { return objects_->has_key(); }

    [[nodiscard]] OriginCapacity capacity() const override { return objects_->capacity(); }

    Result<domain::Listing> list(
        const std::function<void(std::uint64_t)>& progress, std::stop_token stop) override {
        STOKER_TRY(const auto objects, objects_->list(progress, std::move(stop)));
        STOKER_TRY(auto blocks, domain::list_blocks(objects, block_bytes_));
        if (progress) {
            progress(blocks.size());
        }
        return blocks;
    }

    void fetch(OriginFetch request, std::function<void(Result<OriginBytes>)> done) override {
        auto wanted = in_object(std::move(request));
        if (!wanted) {
            done(fail(std::move(wanted).error()));
            return;
        }
        objects_->fetch(*std::move(wanted), std::move(done));
    }

private:
    Bytes block_bytes_;
    std::unique_ptr<Origin> objects_;
};

}  // namespace

std::unique_ptr<Origin> make_block_origin(std::unique_ptr<Origin> objects, Bytes block_bytes) {
    return std::make_unique<BlockOrigin>(std::move(objects), block_bytes);
}

}  // namespace stoker::sidecar
