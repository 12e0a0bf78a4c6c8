#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/domain/shard_index.h"

// The samples of Megatron's indexed datasets: tokens in NAME.bin, tables in NAME.idx (version 1):
//
//   "MMIDIDX\0\0" · version u64 = 1 · type u8 · sequences n u64 · documents d u64
//   tokens of each sequence i32 × n · offset of each in NAME.bin i64 × n · documents' first sequences i64 × d
//   · nothing, or modes i8 × n
//
// A sample is one sequence, which Megatron returns as IndexedDataset[i]; the samples of a pair of
// files have the order of its sequences. Datasets that were not split into sentences have one
// sequence per document. The tables of documents and modes are not read. Pure.
namespace stoker::domain {

inline constexpr std::string_view kMegatronData = ".bin";
inline constexpr std::string_view kMegatronIndex = ".idx";

// A sample's name is its number and the numpy name of its token type: "000000042.uint16".
// kCorruption: no such index, another length than its counts imply, or NAME.bin does not end where
// its last sequence ends, so one file is cut or of another dataset. kInvalidArgument: another
// version, or too many sequences. The empty sequences of an empty NAME.bin are left out.
class MegatronIndex final : public ShardIndex {
public:
    static constexpr std::uint64_t kHeaderBytes = 34;
    static constexpr std::uint64_t kRunSequences = 65536;  // sequences read together

    // Requires: the object `index` has at least kHeaderBytes bytes.
    MegatronIndex(ListedObject data, ListedObject index)
        : ShardIndex(std::move(index)),
          data_(std::move(data)) {}

private:
    struct TokenType {
        std::string_view name;
        std::uint64_t bytes = 0;
    };

    static std::optional<TokenType> token_type(std::uint8_t code);
    [[nodiscard]] std::optional<ByteRange> wanted() const override;
    Status step(std::span<const std::byte> bytes, Listing& samples) override;
    Status end(Listing& samples) override;
    Status take_header(std::span<const std::byte> bytes);
    Status check_length(std::uint64_t documents) const;
    Status take_lengths(std::span<const std::byte> bytes);
    Status take_offsets(std::span<const std::byte> bytes, Listing& samples);

    ListedObject data_;
    std::optional<TokenType> type_;     // nullopt: the header has not been read yet
    std::uint64_t count_ = 0;           // number of sequences
    std::uint64_t done_ = 0;            // sequences done so far
    std::uint64_t data_end_ = 0;        // largest end of a sequence in NAME.bin so far
    std::vector<std::uint64_t> sizes_;  // byte sizes of the run whose offsets are read next
};

}  // namespace stoker::domain
