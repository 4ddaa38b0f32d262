#include "api/libraries.h"

#include <curl/curl.h>
#include <openssl/crypto.h>
#include <sndfile.h>
#include <soxr.h>
#include <zlib.h>

extern "C" {
#include <libavutil/avutil.h>
}

namespace oasr {

std::vector<std::pair<std::string, std::string>> library_versions() {
  return {{"FFmpeg", av_version_info()},
          {"libsndfile", sf_version_string()},
          {"soxr", soxr_version()},
          {"libcurl", curl_version_info(CURLVERSION_NOW)->version},
          {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)},
          {"zlib", zlibVersion()}};
}

}  // namespace oasr
