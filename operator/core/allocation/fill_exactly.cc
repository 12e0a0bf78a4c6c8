#include "operator/core/allocation/fill_exactly.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker::control {

namespace {

constexpr double kZero = 1e-9;
constexpr std::size_t kRowCountMax = 64;
constexpr std::size_t kCellCountMax = 100'000;
constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

// Maximises the sum of gain * x over 0 <= x <= bound and rows * x <= room. Starts with x = 0, which
// is always possible, and stays possible: cut short, it is only not the best.
class Simplex {
public:
    Simplex(std::vector<double> gains, std::vector<double> bounds, std::vector<double> rooms)
        : row_count_(rooms.size()),
          column_count_(gains.size() + rooms.size()),
          gains_(std::move(gains)),
          bounds_(std::move(bounds)),
          basic_values_(std::move(rooms)),
          cells_(row_count_ * column_count_, 0.0),
          is_full_(column_count_, false),
          is_basic_(column_count_, false) {
        const std::size_t first_slack = column_count_ - row_count_;
        gains_.resize(column_count_, 0.0);
        bounds_.resize(column_count_, std::numeric_limits<double>::infinity());
        for (std::size_t row = 0; row < row_count_; ++row) {
            cell(row, first_slack + row) = 1;
            basis_.push_back(first_slack + row);
            is_basic_[first_slack + row] = true;
        }
    }

    double& cell(std::size_t row, std::size_t column) {
        return cells_[row * column_count_ + column];
    }

    void run() {
        const std::size_t steps_max = 50 * column_count_;
        for (std::size_t step = 0; step < steps_max; ++step) {
            // The first that pays instead of the best one: no cycle goes on for ever.
            const std::size_t column = find_entering(step > steps_max / 2);
            if (column == kNobody || !enter(column)) {
                return;
            }
        }
    }

    [[nodiscard]] double value(std::size_t column) const {
        for (std::size_t row = 0; row < row_count_; ++row) {
            if (basis_[row] == column) {
                return basic_values_[row];
            }
        }
        return is_full_[column] ? bounds_[column] : 0;
    }

private:
    [[nodiscard]] std::size_t find_entering(bool take_first) const {
        std::size_t best = kNobody;
        double best_gain = kZero;
        for (std::size_t i = 0; i < column_count_; ++i) {
            const double gain = is_full_[i] ? -gains_[i] : gains_[i];
            if (!is_basic_[i] && bounds_[i] > 0 && gain > best_gain) {
                best = i;
                best_gain = gain;
                if (take_first) {
                    break;
                }
            }
        }
        return best;
    }

    // Moves the column away from its bound until something else reaches one.
    bool enter(std::size_t column) {
        const double sign = is_full_[column] ? -1 : 1;
        double most = bounds_[column];
        std::size_t leaving = kNobody;
        for (std::size_t row = 0; row < row_count_; ++row) {
            const double rate = cell(row, column) * sign;
            double limit = std::numeric_limits<double>::infinity();
            if (rate > kZero) {
                limit = basic_values_[row] / rate;
            } else if (rate < -kZero) {
                limit = (basic_values_[row] - bounds_[basis_[row]]) / rate;
            }
            if (limit < most) {
                most = std::max(limit, 0.0);
                leaving = row;
            }
        }
        if (std::isinf(most)) {
            return false;
        }
        const double start = is_full_[column] ? bounds_[column] : 0;
        for (std::size_t row = 0; row < row_count_; ++row) {
            basic_values_[row] -= cell(row, column) * sign * most;
        }
        if (leaving == kNobody) {
            is_full_[column] = !is_full_[column];
        } else {
            const std::size_t gone = basis_[leaving];
            is_full_[gone] = cell(leaving, column) * sign < 0;
            is_basic_[gone] = false;
            pivot(leaving, column);
            basic_values_[leaving] = start + sign * most;
        }
        return true;
    }

    void pivot(std::size_t row, std::size_t column) {
        const double divisor = cell(row, column);
        for (std::size_t i = 0; i < column_count_; ++i) {
            cell(row, i) /= divisor;
        }
        for (std::size_t other = 0; other < row_count_; ++other) {
            const double factor = other == row ? 0 : cell(other, column);
            for (std::size_t i = 0; factor != 0 && i < column_count_; ++i) {
                cell(other, i) -= factor * cell(row, i);
            }
        }
        const double factor = gains_[column];
        for (std::size_t i = 0; i < column_count_; ++i) {
            gains_[i] -= factor * cell(row, i);
        }
        basis_[row] = column;
        is_basic_[column] = true;
        is_full_[column] = false;
    }

    std::size_t row_count_;
    std::size_t column_count_;
    std::vector<double> gains_;         // reduced
    std::vector<double> bounds_;        // of the columns; the last ones are slack
    std::vector<double> basic_values_;  // by row
    std::vector<double> cells_;
    std::vector<std::size_t> basis_;  // column of each row
    std::vector<bool> is_full_;       // not basic, at its bound
    std::vector<bool> is_basic_;
};

struct Column {
    std::size_t item = 0;
    double bytes = 0;
    double value = 0;
};

// Pieces beyond `lower` that are worth something.
std::vector<Column> columns_of(const FillProblem& problem) {
    std::vector<Column> columns;
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
        std::uint64_t skip = problem.items[i].lower;
        for (const FillPiece& piece : problem.items[i].pieces) {
            const std::uint64_t bytes = piece.bytes - std::min(piece.bytes, skip);
            skip -= piece.bytes - bytes;
            if (bytes > 0 && piece.value > 0) {
                columns.push_back({i, static_cast<double>(bytes), piece.value});
            }
        }
    }
    return columns;
}

Simplex make_program(const FillProblem& problem, const std::vector<Column>& columns, double unit) {
    const std::size_t account_row = problem.node_room.size();
    const std::size_t common_row = account_row + problem.account_room.size();
    double most = 0;
    for (const Column& column : columns) {
        most = std::max(most, column.value);
    }
    std::vector<double> gains;
    std::vector<double> bounds;
    std::vector<double> rooms;
    for (const Column& column : columns) {
        gains.push_back(column.value / most);
        bounds.push_back(column.bytes / unit);
    }
    for (const std::uint64_t room : problem.node_room) {
        rooms.push_back(static_cast<double>(room) / unit);
    }
    for (const std::uint64_t room : problem.account_room) {
        rooms.push_back(static_cast<double>(room) / unit);
    }
    rooms.push_back(static_cast<double>(problem.common_room) / unit);
    Simplex program{std::move(gains), std::move(bounds), std::move(rooms)};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const FillItem& item = problem.items[columns[i].item];
        program.cell(item.node, i) = 1;
        for (const std::uint32_t account : item.accounts) {
            program.cell(account_row + account, i) = 1 / static_cast<double>(item.parts);
        }
        program.cell(common_row, i) = item.accounts.empty() ? 0 : 1;
    }
    return program;
}

}  // namespace

std::optional<std::vector<std::uint64_t>> fill_exactly(const FillProblem& problem) {
    const std::vector<Column> columns = columns_of(problem);
    const std::size_t rows = problem.node_room.size() + problem.account_room.size() + 1;
    if (columns.empty() || rows > kRowCountMax || rows * (columns.size() + rows) > kCellCountMax) {
        return std::nullopt;
    }
    double unit = 1;
    for (const Column& column : columns) {
        unit = std::max(unit, column.bytes);
    }
    Simplex program = make_program(problem, columns, unit);
    program.run();
    std::vector<double> sums(problem.items.size(), 0.0);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        sums[columns[i].item] += program.value(i) * unit;
    }
    std::vector<std::uint64_t> result;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        // A hair more, so that what should be whole is not cut for its rounding.
        const double sum = std::max(0.0, sums[i] * (1 + kZero) + kZero);
        const auto bytes = static_cast<std::uint64_t>(sum);
        result.push_back(problem.items[i].lower + bytes - bytes % problem.items[i].parts);
    }
    return result;
}

}  // namespace stoker::control
