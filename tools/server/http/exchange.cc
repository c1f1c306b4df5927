#include "tools/server/http/exchange.h"

#include <utility>

namespace trine::server {

Exchange::Exchange(HttpRequest request, std::shared_ptr<AnswerPipe> pipe)
    : request_(std::move(request)), pipe_(std::move(pipe)) {}

Exchange::~Exchange() { pipe_->Abandon(); }

bool Exchange::Send(int status, const HttpHeaders& headers, std::string_view body) {
  return pipe_->Send(status, headers, body);
}

bool Exchange::BeginStream(int status, const HttpHeaders& headers) {
  return pipe_->Begin(status, headers);
}

bool Exchange::Write(std::string_view bytes) { return pipe_->Write(bytes); }

void Exchange::End() { pipe_->End(); }

bool Exchange::gone() const { return pipe_->gone(); }

void Exchange::OnGone(std::function<void()> callback) { pipe_->OnGone(std::move(callback)); }

}  // namespace trine::server
