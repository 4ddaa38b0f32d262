// A web server on 127.0.0.1 for tests of downloads, with the faults that servers have.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace oasr::testing {

class TestServer {
 public:
  struct Resource {
    std::string body;
    std::string etag;              // sent in quotes when not empty
    std::string location;          // a redirect, when not empty
    std::size_t cut_once_at = 0;   // the first answer stops after this many bytes; 0: never
    bool ranges = true;            // answers Range requests with 206
    int milliseconds = 0;          // before the answer
  };

  TestServer();
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  void serve(const std::string& path, Resource resource);
  std::string url(const std::string& path) const;

  // "GET /path bytes=5-" of every request so far, in order.
  std::vector<std::string> requests() const;

 private:
  void accept_loop();
  void answer(int connection);
  std::string head_and_body(const std::string& path, std::size_t from, bool ranged,
                            std::size_t& body_bytes);

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::map<std::string, Resource> resources_;
  std::vector<std::string> requests_;
  std::vector<std::thread> connections_;
  std::thread acceptor_;
};

}  // namespace oasr::testing
