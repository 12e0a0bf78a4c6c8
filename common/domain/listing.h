#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace stoker::domain {

// One object in a listing of the origin.
struct ListedObject {
    std::string key;  // relative to the dataset's root, '/'-separated, any bytes but NUL
    std::uint64_t size_bytes = 0;
    std::string etag;  // without quotes; never empty (an empty one cannot be a cache key)

    bool operator==(const ListedObject&) const = default;
};

// The objects of a dataset, before they have ids. Takes 16 bytes an object beyond its key and ETag,
// so a dataset of ten million objects fits in 1 GiB. Movable. Not thread-safe.
class Listing {
public:
    // One object. Its views are valid as long as the listing, also while the listing grows.
    struct Entry {
        std::string_view key;
        std::uint64_t size_bytes = 0;
        std::string_view etag;

        [[nodiscard]] ListedObject copy() const {
            return {std::string{key}, size_bytes, std::string{etag}};
        }
    };

    static Result<Listing> of(const std::vector<ListedObject>& objects);

    // Adds an object; copies the texts. kInvalidArgument: a key or ETag of 64 KiB or more, or more
    // than 4 GiB of keys and ETags together.
    Status add(std::string_view key, std::uint64_t size_bytes, std::string_view etag);

    // Sorts by key, as bytes. Does nothing if the origin listed in this order already.
    void sort();

    [[nodiscard]] std::size_t size() const { return rows_.size(); }

    [[nodiscard]] bool empty() const { return rows_.empty(); }

    // The object at `index`, which must be below size().
    [[nodiscard]] Entry operator[](std::size_t index) const { return entry_of(rows_[index]); }

    // Copies of all objects, some 200 bytes each: use it only for few objects.
    [[nodiscard]] std::vector<ListedObject> objects() const;

private:
    static constexpr std::uint32_t kBlockBytes = 1U << 20U;

    struct Row {
        std::uint64_t size_bytes = 0;
        std::uint32_t at = 0;  // position of the key; the ETag follows the key
        std::uint16_t key_bytes = 0;
        std::uint16_t etag_bytes = 0;
    };

    [[nodiscard]] Entry entry_of(const Row& row) const {
        const char* text = blocks_[row.at / kBlockBytes].get() + row.at % kBlockBytes;
        return {{text, row.key_bytes}, row.size_bytes, {text + row.key_bytes, row.etag_bytes}};
    }

    // Deques, because these grow without copying their elements.
    std::deque<Row> rows_;
    std::vector<std::unique_ptr<char[]>> blocks_;
    std::uint64_t used_ = 0;  // bytes of the blocks in use, gaps at block ends included
};

}  // namespace stoker::domain
