from justitia.engines.serving.prompts import made_up


def test_no_two_prompts_begin_alike() -> None:
    prompts = [tuple(made_up(number, 32, 512)) for number in range(1, 3000)]
    assert len({prompt[:4] for prompt in prompts}) == len(prompts)
    assert all(len(prompt) == 32 for prompt in prompts)
    assert all(3 <= token < 512 for prompt in prompts for token in prompt)
