#include "cases.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "check.hpp"

namespace unisono::tests {

namespace {

class File {
  public:
    explicit File(const char* path) {
        std::ifstream stream(path, std::ios::binary);
        if (!stream) give_up("the file can be read", path, 0);
        bytes_.assign(std::istreambuf_iterator<char>(stream), {});
    }
    bool at_end() const { return at_ == bytes_.size(); }
    std::uint64_t number() {
        std::uint64_t value = 0;
        CHECK(bytes_.size() - at_ >= sizeof value);
        std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    template <typename T>
    std::vector<T> table() {
        const std::uint64_t length = number();
        CHECK(length % sizeof(T) == 0 && bytes_.size() - at_ >= length);
        std::vector<T> rows(length / sizeof(T));
        if (length > 0) std::memcpy(rows.data(), bytes_.data() + at_, length);
        at_ += length;
        return rows;
    }
    std::string text() {
        const std::vector<char> letters = table<char>();
        return {letters.begin(), letters.end()};
    }

  private:
    std::vector<char> bytes_;
    std::size_t at_ = 0;
};

template <typename Names>
std::size_t index_of(const std::string& name, const Names& names) {
    const auto found = std::find(names.begin(), names.end(), name);
    CHECK(found != names.end());
    return static_cast<std::size_t>(found - names.begin());
}

Part read_part(File& file, const Case& whole, std::uint32_t rank, const std::string& dtype, const std::string& op,
               const std::string& codec) {
    auto program = std::make_shared<Program>();
    program->instructions = file.table<Instruction>();
    program->operands = file.table<Operand>();
    program->parts = file.table<Buffer>();
    program->channels = file.table<ChannelUse>();
    program->results = file.table<std::uint32_t>();
    program->rounded_last = file.table<std::uint32_t>();
    program->silent_receivers = file.table<std::uint32_t>();
    program->largest_message = static_cast<std::uint32_t>(file.number());
    program->check(rank, whole.geometry.size);
    Part part;
    Plan plan;
    plan.program = std::move(program);
    plan.extents = file.table<Plan::Extent>();
    plan.segment_bytes = file.number();
    plan.passes = file.number();
    plan.work_bytes = file.number();
    plan.streams = file.number() != 0;
    const std::size_t type = index_of(dtype, dtype_names);
    plan.element_bytes = dtype_bytes[type];
    if (!op.empty()) {
        plan.reduction = static_cast<Reduction>(index_of(op, reduction_names));
        plan.combine = variants().front().find_many(static_cast<DType>(type), plan.reduction);
    }
    plan.wire = static_cast<Wire>(index_of(codec, wire_names));
    plan.fingerprint = std::hash<std::string>()(whole.text);
    plan.text = whole.text;
    static std::uint64_t made = 0;
    plan.number = ++made;
    part.plan = std::make_shared<const Plan>(std::move(plan));
    part.shared = file.number() != 0;
    part.input = file.table<std::byte>();
    part.expected = file.table<std::byte>();
    return part;
}

}  // namespace

std::vector<Case> read_cases(const char* path) {
    File file(path);
    std::vector<Case> cases;
    while (!file.at_end()) {
        Case& made = cases.emplace_back();
        made.geometry.size = static_cast<std::uint32_t>(file.number());
        made.geometry.depth = static_cast<std::uint32_t>(file.number());
        made.geometry.staging_bytes = file.number();
        made.geometry.transfer_bytes = file.number();
        made.text = file.text();
        const std::string dtype = file.text(), op = file.text(), codec = file.text();
        for (std::uint32_t rank = 0; rank < made.geometry.size; ++rank)
            made.parts.push_back(read_part(file, made, rank, dtype, op, codec));
    }
    return cases;
}

void run_and_check(Executor& executor, Plan& plan, const Part& part) {
    std::vector<std::byte> input = part.input;
    std::vector<std::byte> output(part.shared ? 0 : part.expected.size());
    std::vector<std::byte>& result = part.shared ? input : output;
    executor.run(plan, input.data(), result.data(), deadline_after(std::chrono::seconds(100)));
    if (result != part.expected) give_up(plan.text.c_str(), "wrong result", 0);
    CHECK(part.shared || input == part.input);
}

}  // namespace unisono::tests
