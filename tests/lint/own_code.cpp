// A plugin for clang-tidy that limits the checks to declarations of this project. clang-tidy reports nothing about the
// headers of libraries in any case, but checking them took three quarters of the time.
#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendPluginRegistry.h>

namespace {

class OwnCode final : public clang::ASTConsumer {
 public:
  bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
    for (clang::Decl* declaration : group) {
      const auto& sources = declaration->getASTContext().getSourceManager();
      if (!declaration->isFromASTFile() && !sources.isInSystemHeader(declaration->getLocation()))
        own_.push_back(declaration);
    }
    return true;
  }
  void HandleTranslationUnit(clang::ASTContext& context) override { context.setTraversalScope(own_); }

 private:
  std::vector<clang::Decl*> own_;
};

class Action final : public clang::PluginASTAction {
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&, llvm::StringRef) override {
    return std::make_unique<OwnCode>();
  }
  bool ParseArgs(const clang::CompilerInstance&, const std::vector<std::string>&) override { return true; }
  ActionType getActionType() override { return AddBeforeMainAction; }
};

const clang::FrontendPluginRegistry::Add<Action> registered("own-code",
                                                            "limits checks to the project's own declarations");

}  // namespace
