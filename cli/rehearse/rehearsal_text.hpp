// The report of a rehearsal, for people and for programs. Pure.
#pragma once

#include <string>
#include <vector>

#include "rehearse/rehearsal.hpp"

namespace haulout::cli {

// 0 when every node would be drained and every pod finds room, else 1.
int exit_code(const rehearse::Rehearsal& rehearsal);

std::vector<std::string> rehearsal_lines(const rehearse::Rehearsal& rehearsal);

// Parts of it: nothing where there is nothing to say.
void add_waits(std::vector<std::string>& lines, const rehearse::Timeline& timeline);
void add_no_room(std::vector<std::string>& lines, const std::vector<rehearse::NoRoom>& no_room);
void add_assumed(std::vector<std::string>& lines, const std::vector<std::string>& assumed);

// One object, kind RehearsalReport (docs/output.md).
std::string rehearsal_json(const rehearse::Rehearsal& rehearsal, const rehearse::Assumptions& assumptions);

}  // namespace haulout::cli
