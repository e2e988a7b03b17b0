#include "agent/node/record.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const agent::Record record = agent::decode_record(input);
  const bool unreadable = record.cause == "RecordUnreadable";
  must(!unreadable || record.state == agent::State::degraded, "a record that cannot be read is nobody's idle");
  must(agent::decode_record(agent::encode_record(record)) == record, "what is written is read again");
}

static const Target target("record", one);

}  // namespace haulout::fuzz
