#include "cli/migrate/kured_call.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.hpp"
#include "base/text.hpp"

namespace haulout::cli {
namespace {

constexpr std::string_view variable_prefix = "KURED_";
constexpr std::string_view hidden = "(not shown)";

std::string variable_of(std::string_view option) {
  std::string name(variable_prefix);
  for (const char c : option) name += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

const KuredOption* option_of_variable(std::string_view name) {
  for (const KuredOption& option : kured_options())
    if (variable_of(option.name) == name) return &option;
  return nullptr;
}

// Returns the text without the quotes around it. If it has none, or others inside, returns nothing.
std::optional<std::string> unquoted(const std::string& text) {
  if (text.size() < 2 || text.front() != text.back() || (text.front() != '"' && text.front() != '\'')) return {};
  std::string inside = text.substr(1, text.size() - 2);
  if (inside.find(text.front()) != std::string::npos) return {};
  return inside;
}

std::string shown_value(const KuredOption& option, const std::string& value) {
  const bool login = value.find("://") != std::string::npos && value.find('@') != std::string::npos;
  return option.secret || login ? std::string(hidden) : printable(value);
}

std::string suggestion(std::string_view name) {
  std::vector<std::string> known;
  for (const KuredOption& option : kured_options()) known.emplace_back(option.name);
  const auto meant = nearest(name, known);
  return fmt::format("kured {} has no such option{}", kured_version, meant ? "; was --" + *meant + " meant?" : "");
}

}  // namespace

Expanded expanded(std::string_view text, const std::vector<KuredVariable>& variables) {
  Expanded result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const std::size_t end = text[i] == '$' && next == '(' ? text.find(')', i) : std::string_view::npos;
    if (end != std::string_view::npos) {
      const std::string_view name = text.substr(i + 2, end - i - 2);
      const auto found = std::ranges::find(variables, name, &KuredVariable::name);
      if (found == variables.end())
        result.text += text.substr(i, end + 1 - i);
      else if (found->value)
        result.text += *found->value;
      else
        result.source = found->source;
      i = end;
    } else {
      result.text += text[i];
      if (text[i] == '$' && next == '$') ++i;  // "$$" stands for "$"
    }
  }
  return result;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  std::string part;
  bool inside = false;  // inside quotes
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && inside && i + 1 < text.size() && text[i + 1] == '"') {
      part += c;
      ++i;
    } else if (c == '"' && (inside || part.empty())) {
      inside = !inside;
    } else if (c == ',' && !inside) {
      parts.push_back(std::move(part));
      part.clear();
    } else {
      part += c;
    }
  }
  parts.push_back(std::move(part));
  return parts;
}

KuredSettings::KuredSettings(KuredCall call) : call_(std::move(call)) {
  // A variable may use those before it.
  std::vector<KuredVariable> before;
  for (KuredVariable& variable : call_.variables) {
    if (variable.value) {
      Expanded value = expanded(*variable.value, before);
      if (value.source.empty())
        variable.value = std::move(value.text);
      else
        variable = {variable.name, std::nullopt, std::move(value.source)};
    }
    before.push_back(variable);
  }
  read_words();
  read_variables();
  for (const std::string& set : call_.variable_sets)
    strays_.push_back({"envFrom: " + printable(set), Outcome::decide,
                       "its variables were not read: look for KURED_* among them, and give these as variables (env)",
                       true});
  strays_.insert(strays_.end(), call_.unused_values.begin(), call_.unused_values.end());
}

const KuredGiven* KuredSettings::given(std::string_view option) const {
  const auto found = given_.find(option);
  return found == given_.end() ? nullptr : &found->second;
}

std::string KuredSettings::value(std::string_view option) const {
  const KuredGiven* found = given(option);
  if (found != nullptr) return found->values.empty() ? "" : found->values.back();
  return std::string(find_kured_option(option)->fallback);
}

bool KuredSettings::is_on(std::string_view option) const {
  return parse_bool(value(option)).value_or(false);
}

const KuredVariable* KuredSettings::variable(std::string_view name) const {
  // If a name is there twice, the last one counts, as in a container.
  const auto found = std::find_if(call_.variables.rbegin(), call_.variables.rend(),
                                  [&](const KuredVariable& variable) { return variable.name == name; });
  return found == call_.variables.rend() ? nullptr : &*found;
}

void KuredSettings::read_words() {
  const auto stray = [this](std::string spelled, std::string why, bool holds_back = true) {
    strays_.push_back({printable(spelled), Outcome::unknown, std::move(why), holds_back});
  };
  std::vector<Expanded> words;
  words.reserve(call_.words.size());
  for (const std::string& word : call_.words) words.push_back(expanded(word, call_.variables));
  bool flags = true;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Expanded& word = words[i];
    if (flags && word.text == "--") {
      flags = false;
      continue;
    }
    if (!flags || !word.text.starts_with('-') || word.text == "-") {
      stray(word.text.find("://") == std::string::npos ? word.text : std::string(hidden),
            "kured takes no arguments besides flags: it ignores this one", false);
      continue;
    }
    const std::size_t equals = word.text.find('=');
    const std::string flag = word.text.substr(0, equals);
    if (!flag.starts_with("--")) {
      stray(flag, "kured has no short flags: it does not start with this one");
      continue;
    }
    const KuredOption* option = find_kured_option(std::string_view(flag).substr(2));
    if (option == nullptr) {
      stray(flag, suggestion(std::string_view(flag).substr(2)));
    } else if (equals != std::string::npos) {
      const std::string value = word.text.substr(equals + 1);
      add(*option, word.source.empty() ? std::optional(value) : std::nullopt, flag + "=" + shown_value(*option, value),
          word.source, false);
    } else if (option->type == KuredType::boolean) {
      add(*option, "true", flag, "", false);
    } else if (i + 1 < words.size()) {
      const Expanded& value = words[++i];
      add(*option, value.source.empty() ? std::optional(value.text) : std::nullopt,
          flag + "=" + shown_value(*option, value.text), value.source, false);
    } else {
      stray(flag, "it has no value: kured does not start with it");
    }
  }
}

void KuredSettings::read_variables() {
  for (const KuredVariable& variable : call_.variables) {
    if (!variable.name.starts_with(variable_prefix) || this->variable(variable.name) != &variable) continue;
    const KuredOption* option = option_of_variable(variable.name);
    const std::string name = printable(variable.name);
    if (option == nullptr)
      strays_.push_back({name, Outcome::unknown, fmt::format("kured {} has no option for it", kured_version), true});
    else if (option->type == KuredType::repeated)
      strays_.push_back({name, Outcome::not_needed, fmt::format("kured reads --{} only as a flag", option->name)});
    else
      add(*option, variable.value,
          name + "=" + (variable.value ? shown_value(*option, *variable.value) : "(" + variable.source + ")"),
          variable.source, true);
  }
}

void KuredSettings::add(const KuredOption& option, const std::optional<std::string>& value, std::string spelling,
                        const std::string& source, bool by_variable) {
  KuredGiven& given = given_[std::string(option.name)];
  given.spelled.push_back(std::move(spelling));
  const bool collects = option.type == KuredType::list || option.type == KuredType::repeated;
  if (!value) {
    given.source = source;
    if (!collects) given.values.clear();
    return;
  }
  std::string text = *value;
  if (const auto inside = unquoted(text)) {
    text = *inside;
    given.doubts.emplace_back("kured takes the quotes as a part of the value; here it is read without them");
  }
  given.passed.push_back(text);
  if (!collects) {
    given.source.reset();
    if (by_variable && !given.values.empty() && given.values.back() != text)
      given.doubts.emplace_back("the variable counts, not the flag; before kured 1.16.2 it was the other way round");
    given.values = {std::move(text)};
  } else if (option.type == KuredType::repeated) {
    given.values.push_back(std::move(text));
  } else {
    for (std::string& part : split_list(text)) given.values.push_back(std::move(part));
  }
}

}  // namespace haulout::cli
