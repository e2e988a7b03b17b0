#include "agent/logging.hpp"

#include <boost/log/attributes/constant.hpp>
#include <boost/log/core.hpp>
#include <boost/log/expressions.hpp>
#include <boost/log/sinks/basic_sink_backend.hpp>
#include <boost/log/sinks/unlocked_frontend.hpp>
#include <boost/log/sources/record_ostream.hpp>
#include <boost/log/sources/severity_logger.hpp>
#include <boost/smart_ptr/make_shared.hpp>
#include <nlohmann/json.hpp>

#include "agent/text.hpp"
#include "k8s/codec.hpp"

namespace haulout::agent {
namespace {

namespace logging = boost::log;
namespace sinks = boost::log::sinks;

// Hands finished lines to whoever owns stderr (the console, so that a live view is not torn).
class LineBackend final
    : public sinks::basic_formatted_sink_backend<char, sinks::combine_requirements<sinks::concurrent_feeding>::type> {
 public:
  explicit LineBackend(std::function<void(const std::string&)> write) : write_(std::move(write)) {}
  void consume(const logging::record_view&, const string_type& line) { write_(line); }

 private:
  std::function<void(const std::string&)> write_;
};
using Frontend = sinks::unlocked_sink<LineBackend>;  // one thread

std::string text_line(WallTime at, Severity severity, std::string_view message, const Log::Fields& fields) {
  std::string line = fmt::format("{} {:<7} {}", k8s::format_micro_time(at), to_string(severity), printable(message));
  for (const auto& [name, value] : fields) line += fmt::format(" {}={}", name, printable(value));
  return line;
}

std::string json_line(WallTime at, Severity severity, std::string_view message, const Log::Fields& fields) {
  nlohmann::ordered_json json = {
      {"time", k8s::format_micro_time(at)}, {"level", to_string(severity)}, {"message", message}};
  for (const auto& [name, value] : fields) json[name] = value;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
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

class Log::Impl {
 public:
  Impl(LogFormat format, Clock& clock, std::function<void(const std::string&)> write)
      : format_(format),
        clock_(clock),
        sink_(boost::make_shared<Frontend>(boost::make_shared<LineBackend>(std::move(write)))) {
    sink_->set_formatter(logging::expressions::stream << logging::expressions::smessage);
    logging::core::get()->add_sink(sink_);
  }
  ~Impl() { logging::core::get()->remove_sink(sink_); }

  void write(Severity severity, std::string_view message, const Fields& fields) {
    const auto line = format_ == LogFormat::json ? json_line : text_line;
    BOOST_LOG_SEV(logger_, severity) << line(clock_.wall_now(), severity, message, fields);
  }

 private:
  LogFormat format_;
  Clock& clock_;
  boost::shared_ptr<Frontend> sink_;
  logging::sources::severity_logger<Severity> logger_;
};

Log::Log(LogOptions options, Clock& clock, std::function<void(const std::string&)> write)
    : threshold_(threshold_of(options.verbosity)),
      impl_(std::make_unique<Impl>(options.format, clock, std::move(write))) {}

Log::~Log() = default;

void Log::write(Severity severity, std::string_view message, const Fields& fields) {
  if (enabled(severity)) impl_->write(severity, message, fields);
}

}  // namespace haulout::agent
