// Prints a checksum of the results of every loop, for each type, reduction and codec, and of simulated times.
//
//     checksums [VARIANT]
//
// The inputs are the same on every processor, and so must be the output (tools/aarch64.py compares the outputs of
// x86-64 and aarch64). VARIANT is an instruction set of this processor; without it, the best one.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "random_programs.hpp"
#include "unisono/reduce.hpp"
#include "unisono/topk.hpp"
#include "unisono/wire.hpp"

namespace {

using namespace unisono;
using Array = std::vector<std::uint8_t>;

constexpr std::size_t lengths[] = {1, 31, 32, 33, 333, 5003};  // in elements

class Checksum {  // FNV-1a
  public:
    void add(const void* data, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; ++i)
            value_ = (value_ ^ static_cast<const std::uint8_t*>(data)[i]) * 0x100000001b3u;
    }
    void add(const Array& array) { add(array.data(), array.size()); }
    void print(const std::string& loop) const { std::printf("%s %016" PRIx64 "\n", loop.c_str(), value_); }

  private:
    std::uint64_t value_ = 0xcbf29ce484222325u;
};

// Inputs: any bits, among them infinity, subnormal numbers and NaN with any payload; or numbers below 2, whose sums are
// finite.
enum class Input { any_bits, small_numbers };
constexpr Input inputs[] = {Input::any_bits, Input::small_numbers};

Array random_bytes(tests::Random& random, std::size_t bytes) {
    Array array(bytes);
    for (std::uint8_t& byte : array) byte = static_cast<std::uint8_t>(random() >> 56);
    return array;
}

bool is_float(DType type) {
    return type <= DType::float8_e5m2 || type == DType::complex64 || type == DType::complex128;
}

std::size_t bytes_of(DType type) { return dtype_bytes[static_cast<std::size_t>(type)]; }

Array random_array(tests::Random& random, DType type, std::size_t count, Input input) {
    Array array = random_bytes(random, count * bytes_of(type));
    if (input == Input::any_bits || !is_float(type)) return array;
    const std::size_t part = type == DType::complex64 ? 4 : type == DType::complex128 ? 8 : bytes_of(type);
    // Clears the highest bit of the exponent.
    for (std::size_t last = part - 1; last < array.size(); last += part) array[last] &= 0xbf;
    return array;
}

std::vector<float> random_floats(tests::Random& random, std::size_t count, Input input) {
    const Array bytes = random_array(random, DType::float32, count, input);
    std::vector<float> floats(count);
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    if (input == Input::any_bits) return floats;
    // Numbers of similar size, which share a scale of a codec without losing all their bits.
    for (float& value : floats) {
        std::uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        bits = (bits & 0x81ffffffu) + 0x3e000000u;
        std::memcpy(&value, &bits, sizeof bits);
    }
    return floats;
}

void add_floats(Checksum& checksum, const std::vector<float>& floats) {
    checksum.add(floats.data(), floats.size() * sizeof(float));
}

void check_combining(const Variant& variant, DType type, Reduction reduction) {
    const Combine combine = variant.find(type, reduction);
    const CombineMany combine_many = variant.find_many(type, reduction);
    if (combine == nullptr) return;
    tests::Random random(1);
    Checksum one, many;
    for (const Input input : inputs)
        for (const std::size_t count : lengths) {
            std::vector<Array> arrays;
            for (int number = 0; number < 21; ++number) arrays.push_back(random_array(random, type, count, input));
            Array out(arrays[0].size());
            combine(out.data(), arrays[0].data(), arrays[1].data(), count);
            one.add(out);
            for (const std::size_t addends : {1, 2, 5, 9, 20}) {
                std::vector<const void*> from;
                for (std::size_t number = 1; number <= addends; ++number) from.push_back(arrays[number].data());
                Array also(out.size());
                combine_many(out.data(), also.data(), arrays[0].data(), from.data(), addends, count);
                CHECK(out == also);
                many.add(out);
            }
        }
    const std::string name = std::string(" ") + reduction_names[static_cast<std::size_t>(reduction)] + " " +
                             dtype_names[static_cast<std::size_t>(type)];
    one.print("combine" + name);
    many.print("combine_many" + name);
}

void check_dividing(const Variant& variant, DType type) {
    const Divide divide = variant.find_divide(type);
    if (divide == nullptr) return;
    tests::Random random(2);
    Checksum checksum;
    for (const Input input : inputs)
        for (const std::size_t count : lengths)
            for (const std::size_t size : {1, 2, 3, 7, 447, 1000}) {
                Array array = random_array(random, type, count, input);
                divide(array.data(), array.data(), size, count);
                checksum.add(array);
            }
    checksum.print(std::string("divide ") + dtype_names[static_cast<std::size_t>(type)]);
}

// Bytes that could arrive: any codes, but only scales that an encoder chooses.
std::vector<std::byte> random_wire(tests::Random& random, Wire wire, std::size_t count) {
    constexpr int largest_scale = 239;  // of all formats
    const Array bytes = random_bytes(random, encoded_bytes(wire, count));
    std::vector<std::byte> codes(bytes.size());
    std::memcpy(codes.data(), bytes.data(), bytes.size());
    if (wire == Wire::fp16 || wire == Wire::bf16) return codes;
    for (std::size_t block = 0; block * codec_block_elements < count; ++block)
        codes[block] = static_cast<std::byte>(1 + bytes[block] % largest_scale);
    return codes;
}

void check_codec(const WireLoops& loops, Wire wire) {
    tests::Random random(3);
    Checksum encoded, decoded, combined;
    for (const Input input : inputs)
        for (const std::size_t count : lengths) {
            const std::vector<float> source = random_floats(random, count, input);
            std::vector<std::byte> codes(encoded_bytes(wire, count));
            for (const Rounding rounding : {Rounding{}, Rounding{true, 0x123456789abcdef, 7 * codec_block_elements}}) {
                std::vector<float> rounded = source, out(count);
                loops.encode(source.data(), codes.data(), count, rounding);
                encoded.add(codes.data(), codes.size());
                loops.encode_rounding_source(rounded.data(), codes.data(), count, rounding);
                encoded.add(codes.data(), codes.size());
                add_floats(encoded, rounded);
                loops.decode(codes.data(), out.data(), count);
                CHECK(std::memcmp(out.data(), rounded.data(), count * sizeof(float)) == 0);
            }
            const std::vector<std::byte> arrived = random_wire(random, wire, count);
            std::vector<float> out(count);
            loops.decode(arrived.data(), out.data(), count);
            add_floats(decoded, out);
            for (const Reduction reduction : {Reduction::sum, Reduction::prod, Reduction::max, Reduction::min}) {
                loops.find_decode_combine(reduction)(arrived.data(), source.data(), out.data(), count);
                add_floats(combined, out);
            }
        }
    const std::string name = wire_names[static_cast<std::size_t>(wire)];
    encoded.print("encode " + name);
    decoded.print("decode " + name);
    combined.print("decode_combine " + name);
}

void check_topk() {
    tests::Random random(4);
    Checksum checksum;
    for (const Input input : inputs)
        for (const std::size_t count : {33, 5003, 140'000}) {
            const std::vector<float> source = random_floats(random, count, input);
            std::vector<float> out = random_floats(random, count, input);
            const std::size_t kept = count / 10;
            std::vector<std::byte> codes(topk_bytes(count, kept));
            encode_topk(source.data(), codes.data(), count, kept);
            checksum.add(codes.data(), codes.size());
            add_topk(codes.data(), out.data(), count, kept);
            add_floats(checksum, out);
        }
    checksum.print("topk");
}

void check_simulated_times() {
    tests::Random random(5);
    Checksum checksum;
    for (int round = 0; round < 200; ++round) {
        tests::RandomPrograms made(random);
        // Sums of the original numbers are exact, in whatever way they are computed.
        for (auto* const values : {&made.bandwidth, &made.bytes, &made.busy})
            for (double& value : *values) value /= 3;
        const SimulatedTimes times = simulate(made.programs(), made.links(), true, [](std::uint64_t) {});
        if (!times.finished) continue;
        for (const auto* values : {&times.start, &times.end, &times.unit_end})
            checksum.add(values->data(), values->size() * sizeof(double));
    }
    checksum.print("simulated times");
}

}  // namespace

int main(int count, char** arguments) {
    const Variant* chosen = nullptr;
    for (const Variant& variant : variants())
        if (chosen == nullptr || (count > 1 && variant.name == std::string(arguments[1]))) chosen = &variant;
    CHECK(count < 2 || chosen->name == std::string(arguments[1]));
    for (std::size_t type = 0; type < dtype_names.size(); ++type) {
        for (std::size_t reduction = 0; reduction < reduction_names.size(); ++reduction)
            check_combining(*chosen, static_cast<DType>(type), static_cast<Reduction>(reduction));
        check_dividing(*chosen, static_cast<DType>(type));
    }
    for (std::size_t wire = 1; wire < wire_names.size(); ++wire)
        check_codec(*chosen->find_wire(static_cast<Wire>(wire)), static_cast<Wire>(wire));
    check_topk();
    check_simulated_times();
}
