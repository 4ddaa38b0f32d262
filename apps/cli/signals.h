// What the system does to the process: signals and closed standard files. Of Ctrl-C the first asks
// the work to stop cleanly, the second kills.
#pragma once

namespace oasr::cli {

// SIGINT, SIGTERM and SIGHUP (unless it is ignored, as under nohup) set a flag, once; after that they have their usual
// effect. SIGPIPE and SIGXFSZ (a limit on files' sizes) become write errors.
void install_signal_handlers();

// A standard file that is closed is opened on nothing, so that no file of ours takes its number.
void keep_standard_files_apart();

// A signal asked to stop.
bool interrupted();

// 128 + the signal's number.
int interrupt_code();

}  // namespace oasr::cli
