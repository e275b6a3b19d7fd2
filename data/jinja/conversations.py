"""Conversations to render chat templates with: all that a request to transformers' apply_chat_template may hold."""

WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a place, today or later.", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "description": "City & country, \"as written\""},
                                     "days": {"type": "integer", "minimum": 0, "maximum": 14, "default": 1},
                                     "unit": {"type": "string", "enum": ["°C", "°F"]}}, "required": ["place"]}}}
ORDER = {"type": "function", "function": {"name": "place_order", "description": "Orders <things>", "parameters": {
    "type": "object", "properties": {
        "items": {"type": "array", "items": {"type": "object", "properties": {
            "sku": {"type": "string"}, "count": {"type": ["integer", "null"]},
            "options": {"type": "object", "additionalProperties": {"type": "boolean"}}}, "required": ["sku"]}},
        "price": {"type": "number", "minimum": 0.01, "maximum": 1e6}, "to": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "nested": {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string", "description": "tief: größer 中"}}}}}},
    "required": ["items", "price"], "additionalProperties": False}, "strict": True}}
BARE = {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}}}
TOOLS = [WEATHER, ORDER, BARE]


def user(text):
    return {"role": "user", "content": text}


def said(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


def call(name, arguments, id="call00001"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def answer(text, name="get_weather", id="call00001"):
    return {"role": "tool", "name": name, "tool_call_id": id, "content": text}


def parts(*texts):
    return [{"type": "text", "text": text} for text in texts]


def conversations():
    hi = [user("Hi")]
    turns = [user("One?"), said("Two."), user("Three?")]
    odd = ["", " ", "\n", " Hi there \n", "\n\nx", "a<|im_end|>{{ y }}{% z %}", "'q' \"r\" \\ & <b>", "é\u3000中 z\u00a0😀", "<tool_response>\nx\n</tool_response>",
           "/no_think what?", "x</think>y", "[INST] no [/INST]", "a\r\nb\tc\x1cd", "𝔘nicode ﬁ İ ß", "0"]
    answers = ["Hello.", "  sp \n\n", "<think>\nt\n</think>\n\n A ", "x</think>\n\ny</think>z", "", "<think>open", "</think>only", "<think></think>", "[THINK]a[/THINK]b", "<|channel|>analysis<|message|>x<|end|>"]
    weather = [call("get_weather", {"place": "Berlin", "days": 2})]
    two = weather + [call("place_order", {"items": [{"sku": "a\"b", "count": None, "options": {"x": True}}], "price": 1.5, "to": None}, "call00002")]
    asked = [user("Weather?"), said("", tool_calls=weather), answer("{\"temp\": 7, \"sky\": \"grau\"}")]
    chats = [{"messages": [user(text)]} for text in odd]
    chats += [{"messages": [system(text), user("Hi")]} for text in ["Be brief.", " pad \n", "", "x</think>y", "Größe /no_think"]]
    chats += [{"messages": [user(odd[i % 15]), said(text), user(odd[(3 * i) % 15])]} for i, text in enumerate(answers)]
    chats += [{"messages": [system("S"), user("U"), said(text), user("V"), said("W"), user("X")]} for text in answers[:6]]
    chats += [{"messages": turns}, {"messages": turns, "add_generation_prompt": False}, {"messages": hi, "add_generation_prompt": False},
              {"messages": turns[:2], "add_generation_prompt": False}, {"messages": turns[:2]}, {"messages": [system("S")] + turns, "add_generation_prompt": False}]
    # reasoning
    chats += [{"messages": [user("2+2?"), said("4", reasoning_content="2 and 2 …\n"), user("Sure?")]},
              {"messages": [user("2+2?"), said("4", thinking="add"), user("Sure?")]}, {"messages": [user("2+2?"), said("4", reasoning="add")], "add_generation_prompt": False},
              {"messages": [user("2+2?"), said("4", reasoning_content="")], "add_generation_prompt": False},
              {"messages": hi, "enable_thinking": False}, {"messages": hi, "enable_thinking": True}, {"messages": turns, "thinking": True}, {"messages": turns, "thinking": False},
              {"messages": hi, "reasoning_effort": "high"}, {"messages": hi, "reasoning_effort": "low", "model_identity": "You are a test."},
              {"messages": [system("detailed thinking on")] + hi}, {"messages": [user("Hi /think")]}, {"messages": hi, "thinking_budget": 512},
              {"messages": [user("a"), said("b", reasoning_content="r1"), user("c"), said("d", reasoning_content="r2"), user("e")], "clear_thinking": False, "preserve_thinking": True}]
    # tools
    chats += [{"messages": hi, "tools": TOOLS}, {"messages": [system("Use tools.")] + hi, "tools": [WEATHER]}, {"messages": hi, "tools": []}, {"messages": hi, "tools": [BARE]},
              {"messages": asked, "tools": TOOLS}, {"messages": [system("S")] + asked + [said("7 degrees."), user("Thanks")], "tools": TOOLS},
              {"messages": [user("Both?"), said("I look.", tool_calls=two), answer("7"), answer("done", "place_order", "call00002")], "tools": TOOLS},
              {"messages": [user("Both?"), said("", tool_calls=two), answer("7"), answer("done", "place_order", "call00002"), said("Both."), user("Again"), said("", tool_calls=weather), answer("8")], "tools": TOOLS},
              {"messages": asked}, {"messages": asked[:2], "tools": [WEATHER], "add_generation_prompt": False},
              {"messages": [user("W?"), said("", tool_calls=weather, reasoning_content="I should look."), answer("7")], "tools": TOOLS},
              {"messages": [user("W?"), said("<think>\nhm\n</think>\n", tool_calls=weather), answer("7")], "tools": TOOLS},
              {"messages": [user("W?"), {"role": "assistant", "tool_calls": weather}, answer("7")], "tools": TOOLS},
              {"messages": [user("W?"), said("", tool_calls=[call("now", {})]), answer("12:00", "now")], "tools": [BARE]},
              {"messages": [user("W?"), said("", tool_calls=[call("get_weather", "{\"place\": \"Berlin\"}")]), answer("7")], "tools": [WEATHER]},
              {"messages": [user("W?"), said("", tool_calls=[{"type": "function", "function": {"name": "get_weather", "arguments": {"place": "Ø"}}}]), {"role": "tool", "content": "7"}], "tools": [WEATHER]},
              {"messages": [user("W?"), said("", tool_calls=[{"name": "get_weather", "arguments": {"place": "Ø"}, "id": "abcdefghi"}]), answer("7", id="abcdefghi")], "tools": [WEATHER["function"]]},
              {"messages": hi, "tools": [WEATHER["function"]]}, {"messages": hi, "tools": TOOLS, "add_generation_prompt": False}, {"messages": hi, "tools": TOOLS, "enable_thinking": False},
              {"messages": [user("W?"), said("", tool_calls=weather), {"role": "tool", "tool_call_id": "call00001", "content": {"temp": 7, "list": [1, None, True]}}], "tools": TOOLS},
              {"messages": [user("W?"), said("", tool_calls=weather), {"role": "tool", "tool_call_id": "call00001", "content": parts("a", "b")}], "tools": TOOLS},
              {"messages": [system("S"), user("A"), said("B"), user("C"), said("D", tool_calls=weather), answer("7"), said("E"), user("F")], "tools": TOOLS, "tools_in_user_message": False, "date_string": "1 Jan 2025"}]
    # parts, other roles, odd orders
    chats += [{"messages": [{"role": "user", "content": parts("Hi", " there")}]}, {"messages": [system("S"), {"role": "user", "content": parts("é中")}, said("B"), user("C")]},
              {"messages": [{"role": "system", "content": parts("Be brief.")}, {"role": "user", "content": parts("Hi")}, {"role": "assistant", "content": parts("A.")}, user("B")]},
              {"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}]},
              {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "http://x/y.png"}}, {"type": "video"}, {"type": "audio"}]}], "add_vision_id": True},
              {"messages": [{"role": "user", "content": []}]}, {"messages": [user("a"), user("b")]}, {"messages": [said("first"), user("b")]}, {"messages": [system("S")]},
              {"messages": [user("a"), system("late"), user("b")]}, {"messages": [{"role": "developer", "content": "Dev."}, user("a")]}, {"messages": [{"role": "function", "name": "f", "content": "x"}, user("a")]},
              {"messages": [{"role": "User", "content": "a"}]}, {"messages": [{"role": "user"}]}, {"messages": [{"content": "a"}]}, {"messages": [{"role": "user", "content": 5}]}, {"messages": [user("a"), said("b"), said("c")]},
              {"messages": [{"role": "user", "content": "named", "name": "Bo", "from": "x", "extra": {"k": [1]}}]}, {"messages": hi, "documents": [{"title": "T", "text": "body\nof it"}, {"title": "Ü", "text": "x"}]},
              {"messages": [system("S")] + turns, "documents": [{"doc_id": 7, "title": "T", "text": "b", "content": "c"}], "citation_mode": "accurate"},
              {"messages": hi, "bos_token": "<bos>", "custom_tools": [WEATHER]}, {"messages": [system("a"), system("b"), user("c")]}, {"messages": hi * 3 + [said("x")] * 2, "add_generation_prompt": False},
              {"messages": [user("x" * 3000), said("y\n" * 500), user("z")]}, {"messages": [user(f"q{i}") if i % 2 == 0 else said(f"a{i}") for i in range(31)]}]
    # going on with the last message
    chats += [{"messages": [user("Hi"), said("Well, ")], "add_generation_prompt": False, "continue_final_message": True},
              {"messages": [user("Hi"), said("  Well\n\n")], "add_generation_prompt": False, "continue_final_message": True},
              {"messages": [user("Hi"), {"role": "assistant", "content": parts("Well")}], "add_generation_prompt": False, "continue_final_message": True}]
    for chat in chats:
        chat.setdefault("add_generation_prompt", True)
    return chats
