#include "cli/options/arguments.hpp"

namespace haulout::cli {
namespace {

struct Spelling {
  const Flag* flag = nullptr;  // nullptr: the argument is not a known flag
  bool bare = false;           // the flag has no "=" and, if it is short, no value directly after its letter
  std::size_t equals = std::string::npos;
};

Spelling spelling_of(const std::string& arg, const std::vector<Flag>& flags) {
  if (arg.size() < 2 || arg[0] != '-') return {};
  const bool is_long = arg[1] == '-';
  const std::size_t equals = is_long ? arg.find('=') : (arg.find('=') == 2 ? 2 : std::string::npos);
  const std::string name = is_long ? arg.substr(2, equals == std::string::npos ? equals : equals - 2) : "";
  const auto named = [&](const Flag& flag) { return is_long ? flag.name == name : flag.letter == arg[1]; };
  const auto found = std::find_if(flags.begin(), flags.end(), named);
  if (found == flags.end()) return {};
  return {&*found, is_long ? equals == std::string::npos : arg.size() == 2, equals};
}

}  // namespace

Arguments normalise_arguments(const std::vector<Flag>& flags, const std::vector<std::string>& args) {
  Arguments result;
  for (auto arg = args.begin(); arg != args.end(); ++arg) {
    if (*arg == "--") {
      result.words.assign(arg + 1, args.end());
      break;
    }
    const auto [flag, bare, equals] = spelling_of(*arg, flags);
    if (flag == nullptr || (!bare && equals == std::string::npos)) {
      result.args.push_back(*arg);
    } else if (!bare) {
      result.args.push_back(arg->substr(0, equals));
      result.args.push_back(arg->substr(equals + 1));
    } else {
      result.args.push_back(*arg);
      if (flag->kind != Flag::Kind::value)
        result.args.emplace_back(flag->kind == Flag::Kind::boolean ? "true" : "");
      else if (arg + 1 != args.end())
        result.args.push_back(*++arg);
    }
  }
  return result;
}

}  // namespace haulout::cli
