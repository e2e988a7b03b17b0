#include "agent/process/logging.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/log/attributes/constant.hpp>
#include <boost/log/core.hpp>
#include <boost/log/expressions.hpp>
#include <boost/log/sinks/basic_sink_backend.hpp>
#include <boost/log/sinks/unlocked_frontend.hpp>
#include <boost/log/sources/record_ostream.hpp>
#include <boost/log/sources/severity_logger.hpp>
#include <boost/smart_ptr/make_shared.hpp>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "k8s/codec.hpp"

namespace haulout::agent {
namespace {

namespace logging = boost::log;
namespace sinks = boost::log::sinks;

// Passes finished lines to the console, which owns stderr, so that log lines do not break up a live view.
class LineBackend final
    : public sinks::basic_formatted_sink_backend<char, sinks::combine_requirements<sinks::concurrent_feeding>::type> {
 public:
  explicit LineBackend(std::function<void(const std::string&)> write) : write_(std::move(write)) {}
  void consume(const logging::record_view&, const string_type& line) { write_(line); }

 private:
  std::function<void(const std::string&)> write_;
};
using Frontend = sinks::unlocked_sink<LineBackend>;  // needs no lock: only one thread logs

std::string text_line(const std::string& time, Severity severity, std::string_view message, const Log::Fields& fields) {
  std::string line =
      fmt::format("{}{}{:<7} {}", time, time.empty() ? "" : " ", to_string(severity), printable(message));
  for (const auto& [name, value] : fields) line += fmt::format(" {}={}", name, printable(value));
  return line;
}

// Escapes DEL and U+0080 to U+009F, which JSON allows unescaped, because some terminals interpret them. They occur only
// inside strings, so escaping them is always valid.
std::string without_controls(const std::string& json) {
  std::string result;
  result.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto byte = static_cast<unsigned char>(json[i]);
    const bool two = byte == 0xC2 && i + 1 < json.size() && static_cast<unsigned char>(json[i + 1]) < 0xA0;
    if (byte == 0x7F)
      result += "\\u007f";
    else if (two)
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(json[++i]));
    else
      result += json[i];
  }
  return result;
}

std::string json_line(const std::string& time, Severity severity, std::string_view message, const Log::Fields& fields) {
  nlohmann::ordered_json json = {{"time", time}, {"level", to_string(severity)}, {"message", message}};
  for (const auto& [name, value] : fields) json[name] = value;
  return without_controls(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

Severity threshold_of(unsigned verbosity) {
  if (verbosity == 0) return Severity::notice;
  return verbosity == 1 ? Severity::info : Severity::debug;
}

}  // namespace

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::debug: return "debug";
    case Severity::info: return "info";
    case Severity::notice: return "notice";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
  }
  return "";
}

// Returns the prefixes of the priorities of syslog(3).
std::string_view journal_priority(Severity severity) {
  switch (severity) {
    case Severity::debug: return "<7>";
    case Severity::info: return "<6>";
    case Severity::notice: return "<5>";
    case Severity::warning: return "<4>";
    case Severity::error: return "<3>";
  }
  return "";
}

bool is_journal(const std::string& journal_stream, int descriptor) {
  struct stat status{};
  if (journal_stream.empty() || ::fstat(descriptor, &status) != 0) return false;
  return journal_stream == fmt::format("{}:{}", status.st_dev, status.st_ino);
}

class Log::Impl {
 public:
  Impl(const LogOptions& options, Clock& clock, std::function<void(const std::string&)> write)
      : options_(options),
        clock_(clock),
        sink_(boost::make_shared<Frontend>(boost::make_shared<LineBackend>(std::move(write)))) {
    sink_->set_formatter(logging::expressions::stream << logging::expressions::smessage);
    logging::core::get()->add_sink(sink_);
  }
  ~Impl() { logging::core::get()->remove_sink(sink_); }

  void write(Severity severity, std::string_view message, const Fields& fields) {
    const std::string time = k8s::format_micro_time(clock_.wall_now());
    const std::string line = options_.format == LogFormat::json
                                 ? json_line(time, severity, message, fields)
                                 : text_line(options_.to_journal ? "" : time, severity, message, fields);
    BOOST_LOG_SEV(logger_, severity) << (options_.to_journal ? journal_priority(severity) : "") << line;
  }

 private:
  LogOptions options_;
  Clock& clock_;
  boost::shared_ptr<Frontend> sink_;
  logging::sources::severity_logger<Severity> logger_;
};

Log::Log(LogOptions options, Clock& clock, std::function<void(const std::string&)> write)
    : threshold_(threshold_of(options.verbosity)), impl_(std::make_unique<Impl>(options, clock, std::move(write))) {}

Log::~Log() = default;

void Log::write(Severity severity, std::string_view message, const Fields& fields) {
  if (enabled(severity)) impl_->write(severity, message, fields);
}

}  // namespace haulout::agent
