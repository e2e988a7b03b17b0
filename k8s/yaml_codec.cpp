#include "k8s/yaml_codec.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <cstdint>
#include <functional>
#include <map>
#include <sstream>

#include "base/text.hpp"

namespace haulout::k8s {

// plain_scalar_json() converts plain scalars by the rules of Kubernetes' YAML reader (the constants and octals of YAML
// 1.1, and octals of YAML 1.2). It returns nullopt for infinity and NaN, which JSON cannot represent.
namespace {

std::optional<std::string> constant(std::string_view text) {
  static const std::map<std::string_view, std::string_view> words = [] {
    std::map<std::string_view, std::string_view> table;
    for (const auto* word : {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
      table[word] = "true";
    for (const auto* word : {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
      table[word] = "false";
    for (const auto* word : {"", "~", "null", "Null", "NULL"}) table[word] = "null";
    return table;
  }();
  const auto found = words.find(text);
  if (found == words.end()) return std::nullopt;
  return std::string(found->second);
}

// Converts digits with an optional prefix for the base. A leading 0 means octal, as in YAML 1.1.
std::optional<std::string> integer(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    base = text[1] == 'x' || text[1] == 'X' ? 16 : text[1] == 'b' || text[1] == 'B' ? 2 : 8;
    const bool prefixed = base != 8 || text[1] == 'o' || text[1] == 'O';
    text.remove_prefix(prefixed ? 2 : 1);
  }
  const auto value = parse_number<std::uint64_t>(text, base);
  if (!value || (negative && *value > (std::uint64_t{1} << 63))) return std::nullopt;
  return fmt::format("{}{}", negative && *value != 0 ? "-" : "", *value);
}

std::size_t digits(std::string_view text, std::size_t from) {
  std::size_t count = 0;
  while (from + count < text.size() && text[from + count] >= '0' && text[from + count] <= '9') ++count;
  return count;
}

std::optional<std::string> floating(std::string_view text) {
  std::size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const std::size_t whole = digits(text, at);
  at += whole;
  std::size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    fraction = digits(text, ++at);
    at += fraction;
  }
  if (whole + fraction == 0) return std::nullopt;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    const std::size_t exponent = digits(text, at);
    if (exponent == 0) return std::nullopt;
    at += exponent;
  }
  if (at != text.size()) return std::nullopt;
  if (text[0] == '+') text.remove_prefix(1);
  const auto value = parse_number<double>(text);
  if (!value) return std::nullopt;
  // A negative zero becomes 0, because JSON writes it as -0, which YAML reads as the integer 0.
  return fmt::format("{}", *value == 0 ? 0.0 : *value);
}

bool is_not_finite(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text == ".inf" || text == ".Inf" || text == ".INF" || text == ".nan" || text == ".NaN" || text == ".NAN";
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
          out += c;
    }
  }
  return out + '"';
}

std::optional<std::string> plain_scalar_json(const std::string& text) {
  if (auto word = constant(text)) return word;
  if (is_not_finite(text)) return std::nullopt;
  const char first = text[0];
  if ((first >= '0' && first <= '9') || first == '-' || first == '+') {
    std::string plain = text;
    std::erase(plain, '_');
    if (auto number = integer(plain)) return number;
    if (auto number = floating(plain)) return number;
  } else if (first == '.') {
    if (auto number = floating(text)) return number;
  }
  return json_string(text);
}

}  // namespace

namespace {

constexpr std::size_t max_depth = 256;

using Value = YamlValue;
using ValuePtr = YamlPtr;

// Thrown through yaml-cpp, whose event interface offers no other way to stop. Never leaves this file.
struct Refusal {
  YAML::Mark mark;
  std::string cause;
};

std::string resolve_plain(const YAML::Mark& mark, const std::string& text) {
  auto json = plain_scalar_json(text);
  if (!json) throw Refusal{mark, "infinity and NaN cannot be written in JSON"};
  return std::move(*json);
}

std::string scalar_json(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
  if (tag == "!" || tag == "tag:yaml.org,2002:str") return json_string(text);
  if (tag == "?" || tag.empty()) return resolve_plain(mark, text);
  for (const auto* core : {"int", "float", "bool", "null"}) {
    if (tag == std::string("tag:yaml.org,2002:") + core) return resolve_plain(mark, text);
  }
  throw Refusal{mark, "this tag is not supported"};
}

std::size_t line_of(const YAML::Mark& mark) {
  return static_cast<std::size_t>(mark.line) + 1;
}

ValuePtr scalar(const YAML::Mark& mark, std::string json, std::string text) {
  auto value = std::make_shared<Value>();
  value->line = line_of(mark);
  value->json = std::move(json);
  value->text = std::move(text);
  return value;
}

// Builds the tree of one document.
class Builder final : public YAML::EventHandler {
 public:
  // `budget` is the number of members that merge keys may copy.
  explicit Builder(std::size_t budget) : budget_(budget) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    start_ = mark;
    root_.reset();
    anchors_.clear();
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add_scalar(mark, anchor, "null", ""); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (expects_key() && (tag == "?" || tag == "tag:yaml.org,2002:merge") && text == "<<") {
      open_.back().key = scalar(mark, json_string(text), text);
      open_.back().merge = true;
      return;
    }
    add_scalar(mark, anchor, scalar_json(mark, tag, text), text);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refusal{mark, "an alias is inside the node that it repeats"};
    add(mark, found->second);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(mark, tag, anchor, Value::Kind::sequence);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(mark, tag, anchor, Value::Kind::mapping);
  }
  void OnMapEnd() override { end(); }

  const ValuePtr& root() const { return root_; }
  const YAML::Mark& start() const { return start_; }

 private:
  struct Open {
    std::shared_ptr<Value> value;
    YAML::anchor_t anchor;
    YAML::Mark mark;
    ValuePtr key;        // a key that has been read and whose value comes next
    bool merge = false;  // the key is <<
    std::vector<std::pair<ValuePtr, ValuePtr>> merged;
  };

  bool expects_key() const {
    return !open_.empty() && open_.back().value->kind == Value::Kind::mapping && !open_.back().key;
  }

  void start(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Value::Kind kind) {
    if (open_.size() >= max_depth) throw Refusal{mark, fmt::format("nested deeper than {} levels", max_depth)};
    if (tag != "?" && tag != "!" && !tag.empty() && tag != "tag:yaml.org,2002:seq" && tag != "tag:yaml.org,2002:map")
      throw Refusal{mark, "this tag is not supported"};
    if (expects_key()) throw Refusal{mark, "a key must be a scalar"};
    auto value = std::make_shared<Value>();
    value->kind = kind;
    value->line = line_of(mark);
    open_.push_back({std::move(value), anchor, mark, {}, false, {}});
  }

  void end() {
    Open done = std::move(open_.back());
    open_.pop_back();
    std::map<std::string_view, bool> own;
    for (const auto& [key, value] : done.value->members) own.emplace(key->json, true);
    std::vector<std::pair<ValuePtr, ValuePtr>> merged;
    for (auto& member : done.merged) {
      if (!own.contains(member.first->json)) merged.push_back(std::move(member));
    }
    for (auto& member : merged) done.value->members.push_back(std::move(member));
    if (done.anchor != 0) anchors_[done.anchor] = done.value;
    add(done.mark, std::move(done.value));
  }

  void add_scalar(const YAML::Mark& mark, YAML::anchor_t anchor, std::string json, std::string text) {
    ValuePtr value = scalar(mark, std::move(json), std::move(text));
    if (anchor != 0) anchors_[anchor] = value;
    add(mark, std::move(value));
  }

  void add(const YAML::Mark& mark, ValuePtr value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (parent.value->kind == Value::Kind::sequence) {
      parent.value->items.push_back(std::move(value));
    } else if (!parent.key) {
      if (value->kind != Value::Kind::scalar) throw Refusal{mark, "a key must be a scalar"};
      parent.key = std::move(value);
    } else {
      if (parent.merge)
        merge(mark, parent, *value);
      else
        parent.value->members.emplace_back(std::move(parent.key), std::move(value));
      parent.key.reset();
      parent.merge = false;
    }
  }

  // Merges the value of `<<: mapping` or `<<: [mapping, …]` into `parent`. Of several merged values of one key, the
  // first counts; the mapping's own keys take precedence over all of them.
  void merge(const YAML::Mark& mark, Open& parent, const Value& value) {
    if (value.kind == Value::Kind::sequence) {
      for (const auto& item : value.items) {
        if (item->kind != Value::Kind::mapping) throw Refusal{mark, "<< needs a mapping or a list of mappings"};
        merge(mark, parent, *item);
      }
      return;
    }
    if (value.kind != Value::Kind::mapping) throw Refusal{mark, "<< needs a mapping or a list of mappings"};
    std::map<std::string, bool> known;
    for (const auto& [key, member] : parent.merged) known.emplace(key->json, true);
    if (value.members.size() + known.size() > budget_)
      throw Refusal{mark, "the document is too large after its aliases are expanded"};
    budget_ -= value.members.size() + known.size();
    for (const auto& member : value.members) {
      if (!known.contains(member.first->json)) parent.merged.push_back(member);
    }
  }

  std::size_t budget_;
  YAML::Mark start_;
  ValuePtr root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, ValuePtr> anchors_;
};

// Returns the key as a JSON string. Keys are stored as the JSON of their scalar: a quoted one is already a string,
// others are converted.
std::string key_json(const std::string& json) {
  return json.starts_with('"') ? json : json_string(json);
}

// Appends the value as JSON to `out`. Returns false if the text would exceed the limit or be nested too deep. Only
// aliases can cause that.
bool write(const Value& value, std::size_t depth, std::size_t limit, std::string& out) {
  if (depth > max_depth || out.size() > limit) return false;
  switch (value.kind) {
    case Value::Kind::scalar: out += value.json; break;
    case Value::Kind::sequence:
      out += '[';
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) out += ',';
        if (!write(*value.items[i], depth + 1, limit, out)) return false;
      }
      out += ']';
      break;
    case Value::Kind::mapping:
      out += '{';
      for (std::size_t i = 0; i < value.members.size(); ++i) {
        if (i > 0) out += ',';
        out += key_json(value.members[i].first->json);
        out += ':';
        if (!write(*value.members[i].second, depth + 1, limit, out)) return false;
      }
      out += '}';
      break;
  }
  return true;
}

Error error_at(const YAML::Mark& mark, std::string_view cause) {
  if (mark.is_null()) return Error(Errc::decode, std::string(cause));
  return Error(Errc::decode, fmt::format("line {}, column {}: {}", mark.line + 1, mark.column + 1, cause));
}

// Returns the limit for a document as JSON, in bytes. No real document grows tenfold when written as JSON; only aliases
// can cause that.
std::size_t json_limit(std::string_view text) {
  return text.size() * 10 + (std::size_t{1} << 20);
}

// Passes each document that is not empty to `take` until `take` returns false. `take` may throw a Refusal.
using Take = std::function<bool(const YAML::Mark& start, const ValuePtr& root)>;
Result<> read_documents(std::string_view text, const Take& take) {
  try {
    std::istringstream input{std::string(text)};
    YAML::Parser parser(input);
    Builder builder(json_limit(text) / 16);
    bool more = true;
    int last = -1;
    while (more && parser.HandleNextDocument(builder)) {
      // yaml-cpp 0.7 can stop at a token that it does not understand and return empty documents there for ever. So a
      // document that does not begin later than the last one is an error.
      if (builder.start().pos <= last)
        throw Refusal{builder.start(), "this is neither part of the document nor a new document"};
      last = builder.start().pos;
      const ValuePtr& root = builder.root();
      if (root && root->json != "null") more = take(builder.start(), root);
    }
  } catch (const Refusal& refusal) {
    return error_at(refusal.mark, refusal.cause);
  } catch (const YAML::Exception& failure) {
    // In a message of yaml-cpp, the text after a colon may quote the document, so it is cut off.
    const std::string_view cause = failure.msg;
    return error_at(failure.mark, cause.substr(0, cause.find(':')));
  }
  return {};
}

Result<std::vector<std::string>> convert(std::string_view text, std::size_t max_documents) {
  const std::size_t limit = json_limit(text);
  std::vector<std::string> documents;
  const auto take = [&](const YAML::Mark&, const ValuePtr& root) {
    std::string json;
    if (!write(*root, 0, limit, json))
      throw Refusal{YAML::Mark::null_mark(),
                    "the document is too large after its aliases are expanded; write it without aliases"};
    documents.push_back(std::move(json));
    return documents.size() < max_documents;
  };
  const auto read = read_documents(text, take);
  if (!read) return read.error();
  return documents;
}

}  // namespace

Result<std::string> yaml_to_json(std::string_view text) {
  auto documents = convert(text, 1);
  if (!documents) return std::move(documents).error();
  if (documents->empty()) return std::string("null");
  return std::move(documents->front());
}

Result<std::vector<std::string>> yaml_documents_to_json(std::string_view text) {
  return convert(text, text.size() + 1);
}

Result<YamlPtr> yaml_to_tree(std::string_view text) {
  YamlPtr tree;
  const auto take = [&tree](const YAML::Mark& start, const ValuePtr& root) {
    if (tree) throw Refusal{start, "a second document begins here; only one is read"};
    tree = root;
    return true;
  };
  const auto read = read_documents(text, take);
  if (!read) return read.error();
  return tree;
}

}  // namespace haulout::k8s
