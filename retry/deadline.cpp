#include "retry/deadline.hpp"

namespace haulout {

Error deadline_error() {
  return Error(Errc::timeout, "no answer before the deadline");
}

}  // namespace haulout
