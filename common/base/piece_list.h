#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace stoker {

// A list that grows and shrinks at its end, in pieces of `kPiece` values: where a vector would hold
// two copies of itself while it grows, and keep its largest size for ever, this one takes memory
// for at most two pieces more than its values need. Values do not move. One look more an access
// than a vector, into a table that is small. Plain values only. Not thread-safe.
template <class Value, std::size_t kPiece>
class PieceList {
public:
    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] bool empty() const { return size_ == 0; }

    const Value& operator[](std::size_t i) const { return pieces_[i / kPiece][i % kPiece]; }

    Value& operator[](std::size_t i) { return pieces_[i / kPiece][i % kPiece]; }

    // The list must not be empty, as for pop_back().
    [[nodiscard]] const Value& back() const { return (*this)[size_ - 1]; }

    void push_back(const Value& value) {
        if (size_ == pieces_.size() * kPiece) {
            pieces_.push_back(std::make_unique<Value[]>(kPiece));
        }
        (*this)[size_++] = value;
    }

    // The piece behind the last value stays, for a list whose size goes up and down.
    void pop_back() {
        --size_;
        if (size_ + 2 * kPiece <= pieces_.size() * kPiece) {
            pieces_.pop_back();
        }
    }

    // Gives all memory back.
    void clear() { *this = {}; }

    [[nodiscard]] std::size_t memory_bytes() const {
        return pieces_.size() * kPiece * sizeof(Value) + pieces_.capacity() * sizeof(pieces_[0]);
    }

private:
    std::vector<std::unique_ptr<Value[]>> pieces_;
    std::size_t size_ = 0;
};

}  // namespace stoker
